"""`phloem doctor`: what was found, and a known answer."""

from __future__ import annotations

import typer


def doctor() -> None:
    """Show the hardware and libraries found, and check a known answer on every engine."""
    from phloem.analysis.doctor import KNOWN_LOG_LIKELIHOOD, diagnose
    from phloem.cli.streams import print_table, report_console

    console = report_console()
    with console.status("looking, and computing a known answer on every engine (the first call compiles) …"):
        found = diagnose()
    print_table(console, _machine(found))
    print_table(console, _libraries(found))
    print_table(console, _answers(found, KNOWN_LOG_LIKELIHOOD))
    if found.speeds:
        print_table(console, _speeds(found))
    if not found.cache_writable:
        console.print(
            f"Compiled code cannot be kept in {found.cache_directory}: every run compiles anew.\n"
            "Set NUMBA_CACHE_DIR to a folder you can write to.",
            style="yellow",
        )
    for answer in found.answers:
        if answer.error:
            console.print(f"{answer.engine} {answer.precision}: {answer.error}", style="red")
    if found.healthy:
        console.print("healthy", style="green")
    else:
        console.print("not healthy: see above", style="red")
    raise typer.Exit(0 if found.healthy else 1)


def _machine(found):
    from rich.table import Table

    hardware = found.hardware
    table = Table(title="Machine", title_justify="left", show_header=False, min_width=60)
    table.add_row("processor", hardware.cpu)
    table.add_row("cores", f"{hardware.cores} ({hardware.cores_reason})")
    if hardware.memory_bytes is not None:
        table.add_row("memory", _memory(hardware))
    for gpu in hardware.accelerators:
        table.add_row("GPU", f"{gpu.name}, {gpu.memory_bytes / 2**30:.0f} GiB")
    if not hardware.accelerators:
        table.add_row("GPU", "none found")
    elif not hardware.torch_installed:
        table.add_row("", "to use it: pip install 'phloem[gpu]'")
    return table


def _memory(hardware) -> str:
    total = f"{hardware.memory_bytes / 2**30:.1f} GiB"
    if hardware.available_bytes is None:
        return total
    return f"{total}, {hardware.available_bytes / 2**30:.1f} GiB available"


def _libraries(found):
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Libraries", title_justify="left", show_header=False, min_width=60)
    table.add_row("Python", found.python)
    for name, version in found.libraries.items():
        table.add_row(name, version or Text("not installed", "dim"))
    return table


def _answers(found, known: float):
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"Known answer (IQ-TREE 2.0.7: {known})", title_justify="left", min_width=60)
    for header in ("engine", "precision", "log-likelihood", "first call", ""):
        table.add_column(header, justify="right" if header in ("log-likelihood", "first call") else "left")
    for answer in found.answers:
        value = "–" if answer.log_likelihood is None else f"{answer.log_likelihood:.4f}"
        verdict = Text("right", "green") if answer.passed else Text("wrong", "red")
        table.add_row(answer.engine, answer.precision, value, f"{answer.seconds:.2f} s", verdict)
    return table


def _speeds(found):
    from rich.table import Table

    table = Table(title="Measured speeds, by which auto chooses", title_justify="left", min_width=60)
    for header in ("problem", "GPU call", "a level", "GPU", "CPU"):
        table.add_column(header, justify="left" if header == "problem" else "right")
    for kind, speeds in found.speeds.items():
        times = (f"{1e6 * seconds:.0f} µs" for seconds in (speeds.call_seconds, speeds.level_seconds))
        rates = (f"{flop / 1e9:,.0f} GFLOP/s" for flop in (speeds.gpu_flop, speeds.cpu_flop))
        table.add_row(kind, *times, *rates)
    return table

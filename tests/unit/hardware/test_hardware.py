"""What the machine leaves to this process."""

from __future__ import annotations

from phloem.hardware.machine import _container_memory, detect_hardware


def group(folder, limit, used, inactive=0):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {inactive}\nactive_file 7\n")


def test_the_tightest_control_group_counts_and_cached_files_are_free(tmp_path):
    root, own = tmp_path / "cgroup", tmp_path / "self"
    own.write_text("1:name=systemd:/x\n0::/jobs/this\n")
    group(root / "jobs" / "this", 1000, 400, inactive=100)
    assert _container_memory(root, own) == 700
    group(root / "jobs", 500, 450, inactive=10)
    assert _container_memory(root, own) == 60
    group(root, "max", 10_000)
    assert _container_memory(root, own) == 60


def test_no_limit_and_no_control_groups(tmp_path):
    root, own = tmp_path / "cgroup", tmp_path / "self"
    assert _container_memory(root, own) is None
    own.write_text("0::/\n")
    group(root, "max", 10)
    assert _container_memory(root, own) is None


def test_available_memory_is_part_of_the_machine():
    hardware = detect_hardware()
    assert hardware.memory_bytes is None or 0 < hardware.available_bytes <= hardware.memory_bytes

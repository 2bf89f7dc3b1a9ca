"""The likelihood of a run on a GPU: what the compiled loop asks for is answered here.

A chain's topology, branch lengths and models lie in forests (pruning/gpu/forest.py), one for the cells of the
data that are alike, each cell a tree of it, in a stream of their own: the runs of an analysis are threads,
whose launches the GPU works on side by side. The loop asks for values itself where all that it needs is there
(compiled/device.py: answer_there), and hands other questions over in scratch.asked, and what it decided about
a proposal with the next one. Answers are by cells: of those that other processes have, they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np

from phloem.errors import NumericalError
from phloem.inference.mcmc.device_forest import device_fields, forest_of, layouts_of
from phloem.inference.mcmc.records import COMPILED, KIND
from phloem.inference.time.records import (
    CALLER,
    EVERYTHING,
    OTHER_MODEL,
    PARAMETERS,
    PROPOSED,
    SLOPES,
    TimeData,
    TimeScratch,
    TimeState,
)
from phloem.inference.time.start import Cells
from phloem.inference.time.structure import TimeModel
from phloem.model.record import SiteModel, SiteModelGradient
from phloem.pruning.cpu.cell_memory import cell_layout
from phloem.pruning.cpu.chain_tables import table_row

if TYPE_CHECKING:
    from phloem.pruning.gpu.forest import GpuForest


class DeviceLikelihood:
    """Answers the questions of one run. DeviceError where there is no GPU."""

    def __init__(
        self, model: TimeModel, cells: Cells, state: TimeState, scratch: TimeScratch, beside: int
    ) -> None:
        """cells: those here, which hold models; beside: runs that the GPU works for at the same time. Writes
        scratch.there and fields."""
        from phloem.hardware.gpu_device import own_stream

        slot, parts = int(state.slot[0]), cells.forest.parts
        tree = state.order[slot], state.left[slot], state.right[slot]
        self._model, self._cells, self._on_stream = model, cells, own_stream()
        self._layouts, self._part_of = layouts_of(parts), cells.forest.part_of.tolist()
        with self._on_stream():
            own = [[parts[i] for i in of] for of in self._layouts]
            self.forests: list[GpuForest] = [forest_of(of, [tree], beside * len(own)) for of in own]
        self._compiled = cells.recipes.rows[self._part_of, KIND] == COMPILED
        self._fields, self._rows = scratch.fields, scratch.there
        self._fields[:] = device_fields(self.forests, self._layouts)
        self._fields[~self._compiled, 0] = -1
        self._note_places()

    def _note_places(self) -> None:
        self._places = [(f.chains, f.change, f.record) for f in self.forests]
        for row, places in zip(self._rows, self._places):
            row[:] = table_row(*places)

    @staticmethod
    def address(alone: bool) -> int:
        """TimeData.on_device, of a loop that asks itself where all cells are here, else its caller does."""
        if not alone:
            return CALLER
        from phloem.inference.time.compiled.by_address import ANSWER
        from phloem.inference.time.compiled.device import answer_there

        return ANSWER.address(answer_there)

    def on_stream(self) -> AbstractContextManager:
        """Where answers are made."""
        return self._on_stream()

    def answer(self, data: TimeData, state: TimeState, scratch: TimeScratch) -> None:
        """Log-likelihoods and their derivatives into scratch.of_cells, as compiled/likelihood.py writes them.
        nan where one is no number."""
        from phloem.inference.time.compiled.device import note_values, settle_asked

        asked, of_cells = scratch.asked, scratch.of_cells[data.first_cell :]
        settle_asked(self._rows, self._fields, asked)
        if asked[PROPOSED] and not self._evaluated(data, state, scratch):
            of_cells[: len(self._fields)] = np.nan
            return
        note_values(self._rows, self._fields, of_cells)
        if asked[SLOPES]:
            self._note_slopes(data, scratch)

    def _evaluated(self, data: TimeData, state: TimeState, scratch: TimeScratch) -> bool:
        """Evaluate the proposal; False where its log-likelihood is no number."""
        from phloem.inference.time.compiled.device import evaluate_asked, settle_asked
        from phloem.pruning.cpu.chain_versions import READY

        asked, new = scratch.asked, 1 - int(state.slot[0])
        own = data.numbers, data.addresses, self._fields, scratch.others
        try:
            if asked[EVERYTHING]:
                self._start(state.lengths[new], state.values[new])
            if asked[OTHER_MODEL]:
                self._set_models(state.values[new], scratch.others)
            tree = state.left, state.right
            of_cells = scratch.of_cells[data.first_cell :]
            status = evaluate_asked(self._rows, asked, of_cells, tree, state.lengths, state.slot, own)
            if status != READY:
                for forest in self.forests:
                    if forest.change.counts.any() and not forest.chains.trees.pending.any():
                        forest.evaluate()
                self._note_places()
        except NumericalError:
            if asked[EVERYTHING]:
                raise
            settle_asked(self._rows, self._fields, asked)
            return False
        return True

    def _set_models(self, values: np.ndarray, others: np.ndarray) -> None:
        """Models that are others, and that only Python can make."""
        wanted = [cell for cell in range(len(others)) if others[cell] and not self._compiled[cell]]
        models = self._site_models(wanted, values)
        for forest, of in zip(self.forests, self._layouts):
            for k, cell in enumerate(of):
                if cell in models:
                    forest.set_model(k, models[cell])

    def _start(self, lengths: np.ndarray, values: np.ndarray) -> None:
        made = self._site_models(range(len(self._part_of)), values)
        for forest, of in zip(self.forests, self._layouts):
            models = [made[cell] for cell in of]
            forest.start(np.stack([lengths[[self._first_lengths(cell)]] for cell in of]), models)
            # the loop writes numbers only, in the same form
            forest.models[:] = [model for model in models for _ in range(2)]
        self._note_places()

    def _site_models(self, cells: Sequence[int], values: np.ndarray) -> dict[int, SiteModel]:
        """By cell, the same one for all of a part."""
        numbers, parts = self._model.engine_values(values), {self._part_of[cell] for cell in cells}
        made = {part: self._model.engine.site_model(part, numbers) for part in parts}
        return {cell: made[self._part_of[cell]] for cell in cells}

    def _first_lengths(self, cell: int) -> int:
        return self._cells.forest.parts[cell].first_lengths

    def _note_slopes(self, data: TimeData, scratch: TimeScratch) -> None:
        parameters, n = bool(scratch.asked[PARAMETERS]), scratch.by_length.shape[1]
        for i, (forest, of) in enumerate(zip(self.forests, self._layouts)):
            found = forest.gradient(parameters=parameters)
            # a gradient makes room for class rows and so may replace the chains alone
            if self._places[i][0] is not forest.chains or self._places[i][2] is not forest.record:
                self._note_places()
            for k, cell in enumerate(of):
                row = scratch.of_cells[data.first_cell + cell]
                row[1 : 1 + n], row[1 + n :] = found[k, 0], 0.0
                if parameters:
                    by_model = forest.site_model_gradient(k)
                    self._add_model_slopes(data, scratch, cell, by_model, row[1 + n :])

    def _add_model_slopes(
        self, data: TimeData, scratch: TimeScratch, cell: int, gradient: SiteModelGradient, out: np.ndarray
    ) -> None:
        from phloem.inference.time.compiled.device import note_model
        from phloem.inference.time.compiled.model_slopes import add_model_slopes

        down, s = self._cells.memory[cell], len(gradient.invariant_frequencies)
        layout = cell_layout(self._cells.forest.parts[cell])
        down.rates[:], down.weights[:] = gradient.rates, gradient.weights
        down.invariant[:s], down.invariant[s] = gradient.invariant_frequencies, gradient.invariant
        for k, process in enumerate(gradient.processes):
            down.root_frequencies[k] = process.root_frequencies
            by_q = down.rate_matrix[k, : s * layout.padded].reshape(s, layout.padded)
            by_q[:, :s] = process.rate_matrix
        note_model(data.addresses[cell], scratch.asked, scratch.others[cell])
        own = data.numbers[cell], data.addresses[cell], data.downs[cell]
        add_model_slopes(data, self._part_of[cell], *own, scratch, 1, out)

"""The likelihood of a run on a GPU: what the compiled loop asks for is answered here.

A chain's topology, branch lengths and model lie in a forest of one chain (pruning/gpu/forest.py), in a stream
of their own: the runs of an analysis are threads, whose launches the GPU works on side by side. The loop
asks for values itself where all that it needs is there (compiled/device.py: answer_there), and hands other
questions over in scratch.asked, and what it decided about a proposal with the next one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np

from phloem.errors import NumericalError
from phloem.inference.mcmc.device import forest_of
from phloem.inference.mcmc.records import COMPILED, KIND
from phloem.inference.time.records import (
    EVERYTHING,
    LAST_LIKELIHOOD,
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
from phloem.pruning.cpu.cell_memory import cell_layout
from phloem.pruning.cpu.chain_tables import table_row

if TYPE_CHECKING:
    from phloem.pruning.gpu.forest import GpuForest


class DeviceLikelihood:
    """Answers the questions of one run. DeviceError where there is no GPU."""

    def __init__(
        self, model: TimeModel, cells: Cells, state: TimeState, scratch: TimeScratch, beside: int
    ) -> None:
        """cells: one, that holds models; beside: runs that the GPU works for at the same time. Writes
        scratch.there and fields."""
        from phloem.hardware.gpu_device import own_stream

        slot = int(state.slot[0])
        tree = state.order[slot], state.left[slot], state.right[slot]
        self._model, self._cells, self._on_stream = model, cells, own_stream()
        self._mask = np.ones(1, bool)
        with self._on_stream():
            self.forest: GpuForest = forest_of(cells.forest.parts[:1], [tree], beside)
        self._fields, self._row = scratch.fields, scratch.there
        self._fields[:] = np.append(self.forest.numbers.blocks[:, 0], self.forest.sizes.width)
        self._compiled = cells.recipes.rows[0, KIND] == COMPILED
        if not self._compiled:
            self._fields[0] = -1
        layout = cell_layout(cells.forest.parts[0])
        self._width = 4 if layout.padded == 4 else layout.padded
        self._note_places()

    def _note_places(self) -> None:
        forest = self.forest
        self._places = forest.chains, forest.change, forest.record
        self._row[:] = table_row(*self._places)

    @staticmethod
    def address() -> int:
        """TimeData.on_device, of a loop that asks itself."""
        from phloem.inference.time.compiled.by_address import ANSWER
        from phloem.inference.time.compiled.device import answer_there

        return ANSWER.address(answer_there)

    def on_stream(self) -> AbstractContextManager:
        """Where answers are made."""
        return self._on_stream()

    def answer(self, data: TimeData, state: TimeState, scratch: TimeScratch) -> None:
        """The log-likelihood into scratch.last, its derivatives into by_length and by_engine: as
        compiled/likelihood.py writes them from cells. -inf where it is no number."""
        from phloem.inference.time.compiled.device import settle_asked

        asked = scratch.asked
        settle_asked(self._row, asked)
        if not asked[PROPOSED]:
            scratch.last[LAST_LIKELIHOOD] = state.log_likelihood[0]
        elif not self._evaluated(data, state, scratch):
            scratch.last[LAST_LIKELIHOOD] = -np.inf
            return
        if asked[SLOPES]:
            self._add_slopes(data, scratch)

    def _evaluated(self, data: TimeData, state: TimeState, scratch: TimeScratch) -> bool:
        """Evaluate the proposal; False where its log-likelihood is no number."""
        from phloem.inference.time.compiled.device import evaluate_asked, note_value, settle_asked
        from phloem.pruning.cpu.chain_versions import READY

        asked, new = scratch.asked, 1 - int(state.slot[0])
        own = data.numbers[0], data.addresses[0], self._fields
        try:
            if asked[EVERYTHING]:
                self._start(state.lengths[new], state.values[new])
            if asked[OTHER_MODEL] and not self._compiled:
                values = self._model.engine_values(state.values[new])
                self.forest.set_model(0, self._model.engine.site_model(0, values))
            tree = state.left, state.right
            status = evaluate_asked(self._row, asked, scratch.last, tree, state.lengths, state.slot, own)
            if status != READY:
                if self.forest.change.counts.any() and not self.forest.chains.trees.pending.any():
                    self.forest.evaluate()
                self._note_places()
                note_value(self._row, scratch.last)
        except NumericalError:
            if asked[EVERYTHING]:
                raise
            settle_asked(self._row, asked)
            return False
        return True

    def _start(self, lengths: np.ndarray, values: np.ndarray) -> None:
        model = self._model.engine.site_model(0, self._model.engine_values(values))
        self.forest.start(lengths[None], [model])
        self.forest.models[:] = [model, model]  # the loop writes numbers only, in the same form
        self._note_places()

    def _add_slopes(self, data: TimeData, scratch: TimeScratch) -> None:
        from phloem.inference.time.compiled.device import note_model
        from phloem.inference.time.compiled.likelihood import add_model_slopes

        parameters = bool(scratch.asked[PARAMETERS])
        found = self.forest.gradient(self._mask, parameters)
        # a gradient makes room for class rows and so may replace the chains alone
        if self._places[0] is not self.forest.chains or self._places[2] is not self.forest.record:
            self._note_places()
        scratch.by_length[:], scratch.by_engine[:] = found[0, 0], 0.0
        if parameters:
            down, gradient = self._cells.memory[0], self.forest.site_model_gradient(0)
            s = len(gradient.invariant_frequencies)
            down.rates[:], down.weights[:] = gradient.rates, gradient.weights
            down.invariant[:s], down.invariant[s] = gradient.invariant_frequencies, gradient.invariant
            for k, process in enumerate(gradient.processes):
                down.root_frequencies[k] = process.root_frequencies
                by_q = down.rate_matrix[k, : s * self._width].reshape(s, self._width)
                by_q[:, :s] = process.rate_matrix
            own = data.numbers[0], data.addresses[0], data.downs[0]
            note_model(data.addresses[0], scratch.asked)
            add_model_slopes(data, 0, *own, scratch, 1)

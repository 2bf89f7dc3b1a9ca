"""The likelihood of a run on a GPU: what the compiled loop asks for is answered here.

A chain's topology, branch lengths and models lie in forests (pruning/gpu/forest.py), one for the parts of the
data that are alike, each part a tree of it, in a stream of their own: the runs of an analysis are threads,
whose launches the GPU works on side by side. The loop asks for values itself where all that it needs is there
(compiled/device.py: answer_there), and hands other questions over in scratch.asked, and what it decided about
a proposal with the next one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np

from phloem.errors import NumericalError
from phloem.inference.mcmc.device import device_fields, forest_of, layouts_of
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
        """cells: one a part, that hold models; beside: runs that the GPU works for at the same time. Writes
        scratch.there and fields."""
        from phloem.hardware.gpu_device import own_stream

        slot, parts = int(state.slot[0]), cells.forest.parts
        tree = state.order[slot], state.left[slot], state.right[slot]
        self._model, self._cells, self._on_stream = model, cells, own_stream()
        self._parts = layouts_of(parts)
        with self._on_stream():
            own = [[parts[i] for i in of] for of in self._parts]
            self.forests: list[GpuForest] = [forest_of(of, [tree], beside * len(own)) for of in own]
        self._compiled = cells.recipes.rows[:, KIND] == COMPILED
        self._fields, self._rows = scratch.fields, scratch.there
        self._fields[:] = device_fields(self.forests, self._parts)
        self._fields[~self._compiled, 0] = -1
        self._note_places()

    def _note_places(self) -> None:
        self._places = [(f.chains, f.change, f.record) for f in self.forests]
        for row, places in zip(self._rows, self._places):
            row[:] = table_row(*places)

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
        settle_asked(self._rows, self._fields, asked)
        scratch.last[LAST_LIKELIHOOD] = state.log_likelihood[0]
        if asked[PROPOSED] and not self._evaluated(data, state, scratch):
            scratch.last[LAST_LIKELIHOOD] = np.nan
        elif asked[SLOPES]:
            self._add_slopes(data, scratch)

    def _evaluated(self, data: TimeData, state: TimeState, scratch: TimeScratch) -> bool:
        """Evaluate the proposal; False where its log-likelihood is no number."""
        from phloem.inference.time.compiled.device import evaluate_asked, note_value, settle_asked
        from phloem.pruning.cpu.chain_versions import READY

        asked, new = scratch.asked, 1 - int(state.slot[0])
        own = data.numbers, data.addresses, self._fields, scratch.others
        try:
            if asked[EVERYTHING]:
                self._start(state.lengths[new], state.values[new])
            if asked[OTHER_MODEL]:
                self._set_models(state.values[new], scratch.others)
            tree = state.left, state.right
            status = evaluate_asked(self._rows, asked, scratch.last, tree, state.lengths, state.slot, own)
            if status != READY:
                for forest in self.forests:
                    if forest.change.counts.any() and not forest.chains.trees.pending.any():
                        forest.evaluate()
                self._note_places()
                note_value(self._rows, self._fields, scratch.last)
        except NumericalError:
            if asked[EVERYTHING]:
                raise
            settle_asked(self._rows, self._fields, asked)
            return False
        return True

    def _set_models(self, values: np.ndarray, others: np.ndarray) -> None:
        """Models that are others, and that only Python can make."""
        for forest, of in zip(self.forests, self._parts):
            for k, part in enumerate(of):
                if others[part] and not self._compiled[part]:
                    forest.set_model(k, self._site_model(part, values))

    def _start(self, lengths: np.ndarray, values: np.ndarray) -> None:
        for forest, of in zip(self.forests, self._parts):
            models = [self._site_model(part, values) for part in of]
            forest.start(np.stack([lengths[[self._first_lengths(part)]] for part in of]), models)
            # the loop writes numbers only, in the same form
            forest.models[:] = [model for model in models for _ in range(2)]
        self._note_places()

    def _site_model(self, part: int, values: np.ndarray):
        return self._model.engine.site_model(part, self._model.engine_values(values))

    def _first_lengths(self, part: int) -> int:
        return self._cells.forest.parts[part].first_lengths

    def _add_slopes(self, data: TimeData, scratch: TimeScratch) -> None:
        parameters = bool(scratch.asked[PARAMETERS])
        scratch.by_length[:], scratch.by_engine[:] = 0.0, 0.0
        for i, (forest, of) in enumerate(zip(self.forests, self._parts)):
            found = forest.gradient(parameters=parameters)
            # a gradient makes room for class rows and so may replace the chains alone
            if self._places[i][0] is not forest.chains or self._places[i][2] is not forest.record:
                self._note_places()
            for k, part in enumerate(of):
                scratch.by_length[self._first_lengths(part)] += found[k, 0]
                if parameters:
                    self._add_model_slopes(data, scratch, part, forest.site_model_gradient(k))

    def _add_model_slopes(self, data: TimeData, scratch: TimeScratch, part: int, gradient) -> None:
        from phloem.inference.time.compiled.device import note_model
        from phloem.inference.time.compiled.model_slopes import add_model_slopes

        down, s = self._cells.memory[part], len(gradient.invariant_frequencies)
        layout = cell_layout(self._cells.forest.parts[part])
        down.rates[:], down.weights[:] = gradient.rates, gradient.weights
        down.invariant[:s], down.invariant[s] = gradient.invariant_frequencies, gradient.invariant
        for k, process in enumerate(gradient.processes):
            down.root_frequencies[k] = process.root_frequencies
            by_q = down.rate_matrix[k, : s * layout.padded].reshape(s, layout.padded)
            by_q[:, :s] = process.rate_matrix
        note_model(data.addresses[part], scratch.asked, scratch.others[part])
        own = data.numbers[part], data.addresses[part], data.downs[part]
        add_model_slopes(data, part, *own, scratch, 1, scratch.by_engine)

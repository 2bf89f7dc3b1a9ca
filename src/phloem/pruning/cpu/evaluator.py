"""The CPU engine: distinct columns in both passes, compiled kernels, threads that never change a result."""

from __future__ import annotations

import numpy as np

from phloem.errors import NumericalError
from phloem.model.record import ProcessGradient, SiteModel, SiteModelGradient
from phloem.model.transition import rate_matrix_adjoints
from phloem.pruning.cpu.adjoint import sum_shares
from phloem.pruning.cpu.eigenbasis import sum_projected
from phloem.pruning.cpu.model_numbers import (
    fill_matrices,
    has_real_eigen,
    invariant_states,
    model_numbers,
    rate_columns,
    unpack_adjoint,
)
from phloem.pruning.cpu.passes import run_down, run_up
from phloem.pruning.cpu.records import (
    Down,
    Matrices,
    ModelNumbers,
    Nodes,
    RateColumns,
    RootSites,
    Scratch,
    Sweep,
)
from phloem.pruning.cpu.regions import ColumnStore, MessageStore, State, proposed_state, two_dimensional
from phloem.pruning.cpu.root import root_gradient, set_root_row, total_log_likelihood
from phloem.pruning.cpu.schedule import Team, column_tasks, downward, in_blocks, site_tasks, with_matrices
from phloem.pruning.cpu.site_derivatives import (
    batch_size,
    run_sites,
    second_derivatives,
    site_ranges,
    unsummed,
)
from phloem.pruning.cpu.storage import (
    eigen_scratch,
    new_scratch,
    rows_for,
    shape_of,
    state_sets,
)
from phloem.pruning.interface import (
    EngineGradient,
    Problem,
    evaluated,
    pending,
    refuse_slow_precision,
    refuse_to_propose,
)
from phloem.pruning.topology import Topology

# Columns of a node that one task does at least: enough work to pay for taking it (some 10 microseconds).
SMALLEST_RANGE = {True: 384, False: 192}


class CpuEvaluator:
    """Evaluator (pruning/interface.py) on the CPU; results are bitwise the same for any number of threads."""

    name = "cpu"

    def __init__(self, problem: Problem, threads: int | None = None) -> None:
        refuse_slow_precision(problem)
        self._problem, self._team = problem, Team(threads)
        self._topology = topology = Topology.build(problem.left, problem.right)
        self._shape, self._sets = shape_of(problem), state_sets(problem.state_sets)
        self._four = self._shape.states == 4
        n_nodes = len(topology.left)
        self._columns = ColumnStore.build(problem, topology)
        self._messages = MessageStore.build(self._columns.regions, self._shape, problem.precision)
        self._down = np.empty((self._shape.blocks, 2 * n_nodes * self._shape.matrix), problem.precision)
        self._up = np.empty((self._shape.blocks, 0), problem.precision)
        self._adjoint = np.empty(0, problem.precision)
        column, n_root = self._columns.root_column, int(self._columns.size[n_nodes - 1])
        self._weights = np.bincount(column, problem.pattern_weights, n_root)
        self._ascertained = np.zeros(n_root, bool)
        self._ascertained[column] = problem.ascertained
        self._any_ascertained = bool(problem.ascertained.any())
        self._invariant_states = np.empty(0, np.uint8)
        self._scratch = [new_scratch(self._shape, problem.precision) for _ in range(self._team.threads)]
        self._eigen = [eigen_scratch(self._shape) for _ in range(self._team.threads)]
        self._root = [(np.empty(n_root), np.empty(n_root), np.empty(n_root, np.int64)) for _ in range(2)]
        self._site_weights = [np.empty(n_root) for _ in range(2)]
        self._tasks: dict[str, tuple[Topology, np.ndarray]] = {}
        self._sorted_for: Topology | None = None
        self._known_model: tuple[SiteModel, ModelNumbers] | None = None
        self._arguments_of: tuple = ()
        self._known_columns: tuple[SiteModel, RateColumns] | None = None
        self._accepted: State | None = None
        self._proposed: State | None = None

    def log_likelihood(self, lengths: np.ndarray, model: SiteModel) -> float:
        return self._from_scratch(lengths, model, want_up=False).log_likelihood

    def site_log_likelihoods(self) -> np.ndarray:
        state = self._last()
        return self._root[state.slot][0][self._columns.root_column]

    def reweight(self, pattern_weights: np.ndarray) -> None:
        """Let every pattern (P,) count so often from the next evaluation on."""
        self._weights = np.bincount(self._columns.root_column, pattern_weights, len(self._weights))

    def gradient(self, lengths: np.ndarray, model: SiteModel, parameters: bool = False) -> EngineGradient:
        state = self._from_scratch(lengths, model, want_up=True)
        d, branches, d_q = self._pass_down(state, keep_adjoint=parameters)
        site_model = self._site_model_gradient(state, d, d_q) if parameters else None
        return EngineGradient(
            state.log_likelihood, branches if len(branches) > 1 else branches[0], site_model
        )

    def site_branch_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        """(N, P) or (K, N, P) as Evaluator (pruning/interface.py) says."""
        by_class = [first for first, _ in self._unsummed(lengths, model, want_sites=True)]
        first = np.stack(by_class)[..., self._columns.root_column]
        return first if len(first) > 1 else first[0]

    def second_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        """(N,) or (K, N) as Evaluator (pruning/interface.py) says."""
        total = float(self._weights.sum())
        by_class = [
            second_derivatives(share, total) for _, share in self._unsummed(lengths, model, want_sites=False)
        ]
        return np.stack(by_class) if len(by_class) > 1 else by_class[0]

    def propose(self, lengths, changed, model=None, left=None, right=None) -> float:
        refuse_to_propose(self._proposed, left, right)
        old = self._last()
        if np.atleast_2d(lengths).shape != old.lengths.shape:
            raise ValueError(f"{old.lengths.shape} branch lengths expected, got {np.shape(lengths)}")
        state, changed, dirty = proposed_state(old, self._columns, lengths, changed, model, left, right)
        for x in dirty:
            rows = rows_for(int(self._columns.size[state.columns_at[x]]))
            self._messages.regions.reserve(state.messages_at[x], rows)
        self._messages.grow()
        self._proposed = self._evaluate(state, changed, dirty, want_up=False)
        return self._proposed.log_likelihood

    def accept(self) -> None:
        self._accepted, self._proposed = pending(self._proposed), None

    def reject(self) -> None:
        pending(self._proposed)
        self._proposed = None

    def _last(self) -> State:
        state = self._proposed or self._accepted
        return evaluated(None if state is None or np.isnan(state.log_likelihood) else state)

    def _from_scratch(self, lengths, model: SiteModel, want_up: bool) -> State:
        self._proposed = None
        lengths = two_dimensional(lengths)
        nodes = np.arange(lengths.shape[1])
        if self._accepted is None:
            regions = (nodes, nodes, nodes)
            state = State(self._topology, *regions, lengths, model, 0)
        else:
            state = self._accepted._replace(lengths=lengths, model=model, log_likelihood=np.nan)
        if want_up and self._sorted_for is not state.topology:
            self._columns.sort(state.topology, state.columns_at)
            self._sorted_for = state.topology
        # If the evaluation fails, its messages are overwritten and no proposal may use them.
        self._accepted = state
        self._accepted = self._evaluate(state, nodes[:-1], None, want_up)
        return self._accepted

    def _evaluate(self, state: State, changed: np.ndarray, dirty: np.ndarray | None, want_up: bool) -> State:
        """Matrices of the changed nodes, messages of the dirty ones (None: all), and the log-likelihood."""
        model, shape, nodes = state.model, self._shape, self._nodes(state)
        n_nodes = len(nodes.size)
        if want_up and not self._four and self._up.size < self._down.size:
            self._up = np.empty_like(self._down)
        everything = dirty is None
        done = np.zeros((shape.blocks, 2 * n_nodes), np.int64)  # of a block: columns, then matrices
        if everything:
            done[:, -1] = 1  # the root has no matrix
        else:
            done[:, :n_nodes], done[:, n_nodes:] = nodes.size, 1
        if has_real_eigen(model):
            done[:, n_nodes + changed] = 0
        else:
            done[:, n_nodes:] = 1
            up = self._up if want_up else self._up[:, :0]
            fill_matrices(changed, state.matrix_at, state.lengths, model, shape, self._down, up)
            changed = changed[:0]
        if dirty is None:
            self._messages.rescaled.fill(0)
            dirty = np.arange(n_nodes)
        else:
            done[:, dirty] = 0
            self._messages.rescaled[:, state.messages_at[dirty]] = 0
        tasks = self._known_tasks("up", state.topology) if everything and len(changed) else None
        if tasks is None:
            tasks = self._tasks_up(dirty, changed, nodes.size)
            if everything and len(changed):
                self._tasks["up"] = state.topology, tasks
        sites = self._sites(state, model.invariant > 0)
        fixed, counts = self._arguments(state, nodes, sites, want_up), done.reshape(-1)
        scratches = self._scratches(model)
        self._team.run(
            lambda counter, thread: run_up(tasks, counter, counts, *fixed, scratches[thread]), len(tasks)
        )
        weights = self._site_weights[state.slot]
        hidden = self._ascertained
        value = total_log_likelihood(sites.site_log, self._weights, hidden, self._any_ascertained, weights)
        if np.isnan(value):
            raise NumericalError("the log-likelihood is not a number")
        self._arguments_of = fixed
        return state._replace(log_likelihood=value)

    def _pass_down(self, state: State, keep_adjoint: bool):
        """⟨d log L / d P[x, c], Q P[x, c]⟩ (N, C), the derivatives of the branch lengths (K, N), and
        d log L / d Q (S, S) of every process if the adjoints are kept. The state was evaluated last."""
        shape, fixed, model = self._shape, self._arguments_of, state.model
        nodes, n_nodes = fixed[0].nodes, state.lengths.shape[1]
        self._messages.grow_down()
        tasks = self._known_tasks("down", state.topology)
        if tasks is None:
            order = downward(nodes.left, nodes.right)
            tasks = in_blocks(self._column_tasks(order, nodes.size), shape.blocks)
            self._tasks["down"] = state.topology, tasks
        entries = (len(tasks) if keep_adjoint else self._team.threads) * shape.matrix
        if len(self._adjoint) < entries:
            self._adjoint = np.empty(entries, self._problem.precision)
        share = np.zeros((len(tasks), shape.exponents))
        weights, q = self._site_weights[state.slot], self._messages.q
        whole = not has_real_eigen(model)
        down = Down(weights, q, self._adjoint, share, self._rate_columns(model), keep_adjoint, whole, 0)
        done = np.zeros(2 * n_nodes * shape.blocks, np.int64)
        scratches = self._scratches(model)
        self._team.run(
            lambda counter, thread: run_down(
                tasks,
                counter,
                done,
                *fixed,
                scratches[thread],
                self._eigen[thread],
                down._replace(slot=thread),
            ),
            len(tasks),
        )
        total, branches = np.zeros((n_nodes, shape.categories)), np.zeros((len(state.lengths), n_nodes))
        sum_shares(tasks, share, fixed[1], total, branches)
        if not keep_adjoint:
            return total, branches, []
        if not whole:
            return total, branches, self._through_eigenbasis(tasks, n_nodes - 1, model)
        adjoint = self._adjoint[:entries].reshape(len(tasks), -1)
        adjoint[tasks[:, 0] == n_nodes - 1] = 0.0  # the root has no branch: nothing was written there
        by_node = unpack_adjoint(_sum_tasks(adjoint, tasks, n_nodes, shape.blocks)[:-1], shape)
        return total, branches, rate_matrix_adjoints(by_node, state.lengths[:, :-1], model)

    def _through_eigenbasis(self, tasks: np.ndarray, root: int, model: SiteModel):
        """d log L / d Q of every process, from what a way down with real eigensystems has left."""
        shape, states, count = self._shape, self._shape.states, len(model.processes)
        d_q = np.zeros((count, 16 if self._four else shape.matrix))
        sum_projected(tasks, self._adjoint, root, self._model_numbers(model), shape, self._eigen[0], d_q)
        return d_q.reshape(count, -1, shape.padded)[:, :states, :states]

    def _unsummed(self, lengths, model: SiteModel, want_sites: bool) -> list[tuple[np.ndarray, np.ndarray]]:
        """Every root column's own way down, once for every length class: records.Unsummed.first and share."""
        state = self._from_scratch(lengths, model, want_up=True)
        nodes, sites = self._nodes(state), self._sites(state, False)
        batch = batch_size(len(self._problem.tip_codes), self._shape)
        tasks = site_ranges(len(self._weights), batch)
        hidden = np.where(self._ascertained, np.exp(sites.site_log), 0.0)
        fixed, result = self._arguments(state, nodes, sites, True), []
        for k in range(model.n_length_classes):
            record = unsummed(
                model, np.where(model.length_class == k, model.rates, 0.0), self._shape,
                self._problem.precision, (self._weights, hidden / (1.0 - hidden.sum())),
                (len(tasks), len(nodes.left)), batch, want_sites,
            )  # fmt: skip
            arguments = (*fixed, record)
            self._team.run(lambda counter, _, a=arguments: run_sites(tasks, counter, *a), len(tasks))  # type: ignore[misc]
            result.append((record.first, record.share))
        return result

    def _arguments(self, state: State, nodes: Nodes, sites: RootSites, want_up: bool) -> tuple:
        """What every pass takes."""
        matrices = Matrices(self._down, self._up, state.lengths, want_up)
        columns, messages = self._columns.columns(), self._messages.messages()
        sweep = Sweep(nodes, columns, messages, matrices, self._sets, self._shape)
        return sweep, self._model_numbers(state.model), sites

    def _model_numbers(self, model: SiteModel) -> ModelNumbers:
        """Worked out once for a model: a small part of the data would else spend its time on that."""
        if self._known_model is None or self._known_model[0] is not model:
            numbers, row = model_numbers(model, self._shape), np.empty(self._shape.blocks * self._shape.width)
            set_root_row(numbers, self._shape, row)
            self._known_model, self._scratch = (model, numbers), [s._replace(root=row) for s in self._scratch]
        return self._known_model[1]

    def _rate_columns(self, model: SiteModel) -> RateColumns:
        if self._known_columns is None or self._known_columns[0] is not model:
            self._known_columns = model, rate_columns(model)
        return self._known_columns[1]

    def _scratches(self, model: SiteModel) -> list[Scratch]:
        """One for every thread, with what the root weighs columns by."""
        self._model_numbers(model)
        return self._scratch

    def _site_model_gradient(self, state: State, d: np.ndarray, d_q) -> SiteModelGradient:
        """What the transition matrices and the root's columns say about the model's numbers."""
        shape, model = self._shape, state.model
        d_frequencies = np.zeros((len(model.processes), shape.states))
        d_weights, d_invariant = np.zeros(shape.categories), np.zeros(shape.states + 1)
        sweep, numbers, _ = self._arguments_of
        sites = self._sites(state, True)
        weights = self._site_weights[state.slot]
        root = state.lengths.shape[1] - 1
        root_gradient(root, sweep, numbers, sites, weights, d_frequencies, d_weights, d_invariant)
        return SiteModelGradient(
            processes=tuple(ProcessGradient(q, f) for q, f in zip(d_q, d_frequencies)),
            rates=(model.by_category(state.lengths).T * d).sum(0),
            weights=d_weights,
            invariant=float(d_invariant[-1]),
            invariant_frequencies=d_invariant[:-1],
        )

    def _nodes(self, state: State) -> Nodes:
        t = state.topology
        return Nodes(
            t.left, t.right, t.parent, state.columns_at, state.messages_at, state.matrix_at,
            self._columns.size[state.columns_at],
        )  # fmt: skip

    def _sites(self, state: State, with_invariant: bool) -> RootSites:
        if with_invariant and len(self._invariant_states) == 0:
            column = self._columns.root_column
            self._invariant_states = invariant_states(self._problem, column, len(self._weights))
        return RootSites(*self._root[state.slot], self._invariant_states)

    def _known_tasks(self, direction: str, topology: Topology) -> np.ndarray | None:
        """Tasks of a whole pass, kept while the topology stays."""
        known = self._tasks.get(direction)
        return known[1] if known is not None and known[0] is topology else None

    def _tasks_up(self, dirty: np.ndarray, changed: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Matrices of the changed nodes, columns of the dirty ones, then the root's site likelihoods."""
        tasks = self._column_tasks(dirty, size)
        ahead = 0 if self._team.threads == 1 else 2 * self._team.threads
        every = with_matrices(tasks, changed, ahead) if len(changed) else tasks
        return np.concatenate([in_blocks(every, self._shape.blocks), site_tasks(tasks, len(size) - 1)])

    def _column_tasks(self, order: np.ndarray, size: np.ndarray) -> np.ndarray:
        return column_tasks(order, size, len(self._problem.tip_codes), SMALLEST_RANGE[self._four])


def _sum_tasks(shares: np.ndarray, tasks: np.ndarray, n_nodes: int, blocks: int) -> np.ndarray:
    """Sum over a node's tasks, which are neighbours, in order: (N, blocks, ...) float64 from (tasks, ...)."""
    first = np.flatnonzero(np.diff(tasks[:, 0], prepend=-1))
    total = np.zeros((n_nodes, blocks, *shares.shape[1:]))
    total[tasks[first, 0], tasks[first, 3]] = np.add.reduceat(shares, first, axis=0, dtype=np.float64)
    return total

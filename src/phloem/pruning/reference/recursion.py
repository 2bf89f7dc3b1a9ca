"""The recursion and its gradient on distinct columns, in NumPy: up, at the root, down, by site."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

import numpy as np

from phloem.model.record import SiteModel
from phloem.pruning.interface import ColumnClasses

# Distinct columns below every node.


def column_classes(left: np.ndarray, right: np.ndarray, tip_codes: np.ndarray, repeats: bool = True):
    """Number the distinct columns of every node, in order of first appearance.

    left, right: (T-1,) children of internal node T+k. tip_codes: (T, P). repeats=False keeps P columns
    at every node (the switch that turns the idea off, for comparison).
    A tip's class is its character code; an internal node's is the pair of its children's classes
    (Kobert, Flouri, Stamatakis 2017, Systematic Biology 66:205).
    """
    n_tips, n_patterns = tip_codes.shape
    class_of = np.empty((2 * n_tips - 1, n_patterns), np.int64)
    lefts, rights, sizes = [], [], []
    for node in range(2 * n_tips - 1):
        if node < n_tips:
            first, second = tip_codes[node].astype(np.int64), np.full(n_patterns, -1, np.int64)
        else:
            first, second = class_of[left[node - n_tips]], class_of[right[node - n_tips]]
        representative, class_of[node] = _first_seen(first, second, repeats)
        lefts.append(first[representative])
        rights.append(second[representative])
        sizes.append(len(representative))
    return ColumnClasses(
        n_tips=n_tips,
        left=np.asarray(left, np.int32),
        right=np.asarray(right, np.int32),
        offset=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        left_class=np.concatenate(lefts).astype(np.int32),
        right_class=np.concatenate(rights).astype(np.int32),
        pattern_column=class_of[-1].astype(np.int32),
    )


def _first_seen(first: np.ndarray, second: np.ndarray, repeats: bool):
    """Representative pattern of each distinct pair, and the number of every pattern's pair."""
    n = len(first)
    if not repeats:
        return np.arange(n), np.arange(n)
    key = first * (second.max(initial=0) + 2) + second + 1
    _, index, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(index)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return index[order], rank[inverse]


# The post-order pass: branch messages from the tips to the root.


def postorder(classes: ColumnClasses, transition: np.ndarray, state_sets: np.ndarray):
    """Branch messages on distinct columns (Felsenstein 1981; Suchard and Rambaut 2009, eq. 1).

    m_x = P_x p_x with p_x = m_left[:, left_class] ∘ m_right[:, right_class]; at a tip p_x is the indicator of
    the allowed states, so m_x is a sum of columns of P_x. True value = stored × 2**exponent: a column of one
    category is rescaled by an exact power of two when its largest entry falls below 2**-limit.

    transition: (N-1, C, S, S); its dtype is the precision. Returns two lists over nodes: messages
    (C, S, K_x) and exponents (C, K_x) int32. For the root they hold p_root itself (no branch above it).
    """
    messages: list[np.ndarray] = []
    exponents: list[np.ndarray] = []
    n_nodes, n_categories = classes.n_nodes, transition.shape[1]
    for x in range(n_nodes):
        if x < classes.n_tips:
            codes = classes.left_class[classes.columns(x)]
            messages.append(transition[x] @ state_sets[codes].T.astype(transition.dtype))
            exponents.append(np.zeros((n_categories, len(codes)), np.int32))
            continue
        p, exponent, _ = node_partials(classes, messages, exponents, x)
        messages.append(transition[x] @ p if x < n_nodes - 1 else p)
        exponents.append(exponent)
    return messages, exponents


def node_partials(classes: ColumnClasses, messages, exponents, x: int):
    """p_x (C, S, K_x), its exponents, and this node's own rescaling: stored = product · 2**-shift."""
    k = x - classes.n_tips
    left, right = classes.left[k], classes.right[k]
    left_class = classes.left_class[classes.columns(x)]
    right_class = classes.right_class[classes.columns(x)]
    p = messages[left][:, :, left_class] * messages[right][:, :, right_class]
    exponent = exponents[left][:, left_class] + exponents[right][:, right_class]
    shift = rescale_shift(p)
    return np.ldexp(p, -shift[:, None, :]), exponent + shift, shift


def rescale_shift(p: np.ndarray) -> np.ndarray:
    """Power of two of each column's largest entry where that is below the limit, else 0. p: (C, S, K)."""
    limit = -30 if p.dtype == np.float32 else -256
    largest = p.max(axis=1)
    _, power = np.frexp(largest)
    return np.where((largest > 0) & (power < limit), power, 0).astype(np.int32)


# At the root: site likelihoods, the log-likelihood, and what starts the pre-order pass.


def site_log_likelihoods(partials, exponents, model: SiteModel, invariant_states):
    """log L of every root column: L = Σ_c w_c Σ_s π_cs p[c, s] + invariant · Σ_s φ_s [all tips allow s].

    π_c is the root distribution of category c's process, φ that of invariable sites.

    partials: (C, S, K), exponents: (C, K); invariant_states: (K, S) bool. Returns (K,) float64.
    """
    mantissa, power = _category_likelihoods(partials, exponents, model, invariant_states)
    top = power.max(axis=0)
    return np.log(np.ldexp(mantissa, power - top).sum(axis=0)) + top * np.log(2.0)


def _category_likelihoods(partials, exponents, model, invariant_states):
    """Weighted likelihood of each category (invariable sites last) as (mantissa, power of two), (C+1, K)."""
    f = model.root_frequencies
    variable = np.einsum("cs,csk,c->ck", f, partials.astype(np.float64), model.weights)
    constant = model.invariant * (invariant_states @ model.invariant_frequencies)
    power = np.vstack([exponents, np.zeros(len(constant), np.int32)])
    value = np.vstack([variable, constant])
    return value, np.where(value > 0, power, np.iinfo(np.int32).min // 2)


def total_log_likelihood(site_log, column_weights, ascertained) -> tuple[float, np.ndarray]:
    """Sum over columns, exactly rounded, and its derivative with respect to each site log-likelihood.

    ascertained: columns (bool, K) that stand for the patterns that cannot be observed (Lewis 2001, Mkv):
    log L = Σ w log L_j - W log(1 - Σ_ascertained L_j). Their own weights are 0.
    """
    weights = column_weights.astype(np.float64).copy()
    seen = weights != 0  # an impossible column that does not occur says nothing
    terms = list(weights[seen] * site_log[seen])
    if ascertained.any():
        hidden = np.exp(site_log[ascertained])
        total = weights.sum()
        terms.append(-total * np.log1p(-hidden.sum()))
        weights[ascertained] += total * hidden / (1 - hidden.sum())
    return fsum(terms), weights


@dataclass(frozen=True)
class RootAdjoint:
    """q: (C, S, K) starts the pre-order pass; the others are derivatives of the fields of SiteModel of those
    names, root_frequencies (S,) of every process."""

    q: np.ndarray
    root_frequencies: list[np.ndarray]
    weights: np.ndarray
    invariant: float
    invariant_frequencies: np.ndarray


def root_adjoint(partials, exponents, model: SiteModel, invariant_states, site_log, weights) -> RootAdjoint:
    """d log L / d p_root, scaled as the pre-order pass wants it, and the gradient of what only the root sees.

    weights: (K,) from total_log_likelihood. Stored q[c, s, k] = true q · 2**exponents[c, k], so that
    stored q · stored p is the true product.
    """
    scale = weights * np.exp(exponents * np.log(2.0) - np.where(weights == 0, 0.0, site_log))
    f = model.root_frequencies
    q = scale[:, None, :] * model.weights[:, None, None] * f[:, :, None]
    allowed = invariant_states.any(axis=1)  # elsewhere 1 / L may overflow, and does not matter
    allowed &= weights != 0
    constant = np.where(allowed, weights * np.exp(-np.where(allowed, site_log, 0.0)), 0.0)
    seen = np.einsum("ck,csk->cs", scale, partials)
    by_category, share = model.weights[:, None] * seen, constant @ invariant_states
    return RootAdjoint(
        q=q.astype(partials.dtype),
        root_frequencies=[by_category[model.process == k].sum(0) for k in range(len(model.processes))],
        weights=(seen * f).sum(1),
        invariant=float(share @ model.invariant_frequencies),
        invariant_frequencies=model.invariant * share,
    )


# The pre-order pass on distinct columns, from the root to the tips, and what it meets on the way.


def preorder(classes: ColumnClasses, transition, messages, exponents, state_sets, root_q):
    """Adjoint of every transition matrix, d log L / d P[x, c] = u_x p_xᵀ.

    The gradient is linear in the pre-order vectors, so columns that share a class below a child are *summed*
    on the way down: for child x of k with sibling y,
        u_x[:, i] = Σ over columns j of k with class_x(j) = i of q_k[:, j] ∘ m_y[:, class_y(j)],
        q_x = P_xᵀ u_x.
    Gangavarapu et al. 2024 give the unsummed recursion. Stored u = true u · 2**exponent of m_x, hence the
    shift.
    root_q: (C, S, K_root) from root_adjoint. Returns (N-1, C, S, S) float64 and the list of u_x (C, S, K_x).
    """
    n_nodes = classes.n_nodes
    u = [np.zeros_like(m) for m in messages]
    adjoint = np.empty(transition.shape, np.float64)
    for x in range(n_nodes - 1, -1, -1):
        if x < classes.n_tips:
            p = state_sets[classes.left_class[classes.columns(x)]].T[None].astype(messages[x].dtype)
        else:
            p, _, shift = node_partials(classes, messages, exponents, x)
            q = root_q if x == n_nodes - 1 else np.swapaxes(transition[x], 1, 2) @ u[x]
            _pass_to_children(classes, messages, u, x, np.ldexp(q, -shift[:, None, :]))
        if x < n_nodes - 1:
            adjoint[x] = u[x].astype(np.float64) @ np.swapaxes(np.broadcast_to(p, u[x].shape), 1, 2)
    return adjoint, u


def _pass_to_children(classes: ColumnClasses, messages, u, x: int, q) -> None:
    k = x - classes.n_tips
    left, right = classes.left[k], classes.right[k]
    left_class = classes.left_class[classes.columns(x)]
    right_class = classes.right_class[classes.columns(x)]
    np.add.at(u[left], np.s_[:, :, left_class], q * messages[right][:, :, right_class])  # type: ignore[arg-type]
    np.add.at(u[right], np.s_[:, :, right_class], q * messages[left][:, :, left_class])  # type: ignore[arg-type]


def branch_derivatives(adjoint: np.ndarray, transition: np.ndarray, model: SiteModel) -> np.ndarray:
    """D[x, c] = ⟨dlogL/dP[x, c], Q_c P[x, c]⟩, so that d/d length_x = Σ_c rates[c] D[x, c], over the
    categories that use it, and d/d rates[c] = Σ_x length_x D[x, c]. Returns (N-1, C)."""
    return np.einsum("xcij,xcij->xc", adjoint, generators(model) @ transition)


def generators(model: SiteModel) -> np.ndarray:
    """(C, S, S) rate matrix of every category."""
    return np.stack([p.rate_matrix for p in model.processes])[model.process]


def by_length_class(of_category: np.ndarray, model: SiteModel) -> np.ndarray:
    """(…, C, N) sums over the categories of each set of branch lengths: (N,), or (K, N) where there are K."""
    if model.n_length_classes == 1:
        return of_category.sum(-2)
    classes = range(model.n_length_classes)
    return np.stack([of_category[..., model.length_class == k, :].sum(-2) for k in classes], -2)


def node_posteriors(
    classes: ColumnClasses, transition, messages, exponents, site_q, state_sets
) -> Iterator[tuple[int, np.ndarray]]:
    """P(state s at a node, site not invariable | data) of every root column, (K_root, S): of all nodes, the
    root first, parents before children, tips too (what an ambiguous character is likely to be).

    The pre-order vector times the post-order one (Yang, Kumar and Nei 1995, Genetics 141:1641).

    Down the tree, q_child = Pᵀ (q ∘ m_sibling), with q and its place among the columns of the node; the
    posterior is Σ_c q[c, s] p[c, s], where site_q (C, S, K_root), from root_adjoint with weights of one,
    carries w_c π_s / L.
    """
    root = classes.n_nodes - 1
    waiting = [(root, site_q, np.arange(classes.size(root)))]
    while waiting:
        x, q, column = waiting.pop()
        if x < classes.n_tips:
            allowed = state_sets[classes.left_class[classes.columns(x)]].T
            yield x, (q.astype(np.float64) * allowed[None, :, column]).sum(0).T
            continue
        p, _, shift = node_partials(classes, messages, exponents, x)
        yield x, (q.astype(np.float64) * p[:, :, column]).sum(0).T
        k, q = x - classes.n_tips, np.ldexp(q, -shift[:, None, column])
        left, right = int(classes.left[k]), int(classes.right[k])
        at_left = classes.left_class[classes.columns(x)][column]
        at_right = classes.right_class[classes.columns(x)][column]
        for child, own, other, beside in ((right, at_right, left, at_left), (left, at_left, right, at_right)):
            waiting.append(
                (child, np.swapaxes(transition[child], 1, 2) @ (q * messages[other][:, :, beside]), own)
            )


# Derivatives of every site pattern's log-likelihood in every branch length: pre-order, not summed.


def site_branch_derivatives(
    classes: ColumnClasses, transition, messages, exponents, site_q, model: SiteModel
):
    """First and second derivative of each root column's likelihood in each branch length, over itself.

    As in reference/recursion.py, but every root column k keeps its own pre-order vector u_x (Gangavarapu et
    al. 2024, Systematic Biology): with dP/db = r Q P and d²P/db² = r² Q² P,
        first[x, k] = Σ_c r_c ⟨u_x, Q m_x⟩ = L'_k / L_k,
        second[x, k] = Σ_c r_c² ⟨u_x, Q² m_x⟩ = L''_k / L_k,
    sums over the categories that use the branch length. site_q: (C, S, K_root) from root_adjoint with weights
    of one. Returns two float64 (N, K_root), or (K, N, K_root) with K length classes; the root's row is 0.
    """
    n_nodes, n_root = classes.n_nodes, classes.size(classes.n_nodes - 1)
    classes_of_lengths = () if model.n_length_classes == 1 else (model.n_length_classes,)
    first, second = (np.zeros((*classes_of_lengths, n_nodes, n_root)) for _ in range(2))
    q_of = generators(model)
    above: list = [None] * n_nodes  # (u_x, class at x of every root column), freed on the way down
    above[n_nodes - 1] = site_q, np.arange(n_root)
    for x in range(n_nodes - 1, -1, -1):
        u, column = above[x]
        above[x] = None
        q = u
        if x < n_nodes - 1:
            slopes, curves = _branch_ratios(u, messages[x][:, :, column], q_of)
            first[..., x, :] = by_length_class(model.rates[:, None] * slopes, model)
            second[..., x, :] = by_length_class(model.rates[:, None] ** 2 * curves, model)
            q = np.swapaxes(transition[x], 1, 2) @ u
        if x >= classes.n_tips:
            _, _, shift = node_partials(classes, messages, exponents, x)
            _pass_sites_to_children(classes, messages, above, x, np.ldexp(q, -shift[:, None, column]), column)
    return first, second


def _branch_ratios(u, message, q_of) -> tuple[np.ndarray, np.ndarray]:
    """⟨u, Q m⟩ and ⟨u, Q² m⟩ of every category and column, (C, K)."""
    u, slope = u.astype(np.float64), q_of @ message.astype(np.float64)
    return np.einsum("csk,csk->ck", u, slope), np.einsum("csk,csk->ck", u, q_of @ slope)


def _pass_sites_to_children(classes: ColumnClasses, messages, above, x: int, q, column) -> None:
    k = x - classes.n_tips
    left, right = classes.left[k], classes.right[k]
    left_class = classes.left_class[classes.columns(x)][column]
    right_class = classes.right_class[classes.columns(x)][column]
    above[left] = q * messages[right][:, :, right_class], left_class
    above[right] = q * messages[left][:, :, left_class], right_class


def branch_second_derivatives(first, second, column_weights, ascertained, site_log) -> np.ndarray:
    """d² log L / d b_x² = Σ_k w_k [L''_k / L_k - (L'_k / L_k)²], (N,) or (K, N).

    With ascertained columns (hidden probability H = Σ_ascertained L_k, W = Σ w_k) the term
    - W log(1 - H) adds W [H'' / (1 - H) + (H' / (1 - H))²].
    """
    total = (second - first**2) @ column_weights
    if ascertained.any():
        likelihood = np.exp(site_log[ascertained])
        seen = 1.0 - likelihood.sum()
        slope, curve = (d[..., ascertained] @ likelihood / seen for d in (first, second))
        total = total + column_weights.sum() * (curve + slope**2)
    return total

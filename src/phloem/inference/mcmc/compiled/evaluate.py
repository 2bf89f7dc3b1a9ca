"""The log-likelihood of a chain's proposal, recomputing only what differs from its accepted state.

Every message, matrix and numbering of classes has two buffers. What changed is written to the buffer not in
use; accept exchanges indices, reject forgets them; neither copies.
"""

from __future__ import annotations

from phloem.inference.mcmc.compiled.classes import number_classes
from phloem.inference.mcmc.compiled.compile import compiled, merged
from phloem.inference.mcmc.compiled.layout import class_row, message_at
from phloem.inference.mcmc.compiled.messages import child_exponents, message, message_4, rescale, tip_message
from phloem.inference.mcmc.compiled.model import set_model
from phloem.inference.mcmc.compiled.root import (
    add_invariable,
    set_root_tip,
    site_likelihoods,
    total_log_likelihood,
)
from phloem.inference.mcmc.compiled.transition import set_transition, set_transition_4
from phloem.inference.mcmc.records import FREQUENCY, P_INVARIABLE


@compiled
def evaluate(data, state, work, h, everything):
    """Log-likelihood of the proposal of chain h; everything: trust no cache (start, resume)."""
    new = 1 - state.slot[h]
    model_changed = everything or _differ(state.parameters[h, 0], state.parameters[h, 1])
    work.new_model_slot[0] = work.model_slot[h]
    if model_changed:
        work.new_model_slot[0] = 1 - work.model_slot[h]
        set_model(data, state.parameters[h, new], work, h, work.new_model_slot[0])
    root = state.left[h, new, 0]
    for at in range(state.postorder.shape[2]):
        x = state.postorder[h, new, at]
        matrix_changed = model_changed or state.length[h, 0, x] != state.length[h, 1, x]
        work.new_matrix_slot[x] = work.matrix_slot[h, x]
        if matrix_changed:
            work.new_matrix_slot[x] = 1 - work.matrix_slot[h, x]
            _fill_matrix(data, state, work, h, x)
        below_changed = _update_classes(data, state, work, h, x, root, everything)
        work.new_message_slot[x] = work.message_slot[h, x]
        if x != root and (matrix_changed or below_changed):
            work.new_message_slot[x] = 1 - work.message_slot[h, x]
            work.dirty[x] = max(work.dirty[x], 1)
            _fill_message(data, state, work, h, x)
    return _at_root(data, state, work, h, root)


@compiled
def _differ(a, b):
    differ = False
    for i in range(a.shape[0]):
        differ = differ or a[i] != b[i]
    return differ


@merged
def _update_classes(data, state, work, h, x, root, everything):
    """Number the classes of x anew if the set of tips below it changed (dirty[x] = 2, else 0); True if x's
    children, or anything below them, are not what they were."""
    new, n_tips = 1 - state.slot[h], data.tip_codes.shape[0]
    work.new_class_slot[x] = work.class_slot[h, x]
    work.dirty[x] = 0
    changed = False
    if x >= n_tips:
        l, r = state.left[h, new, x], state.right[h, new, x]
        old_l, old_r = state.left[h, 1 - new, x], state.right[h, 1 - new, x]
        same = (l == old_l and r == old_r) or (l == old_r and r == old_l)
        was_root = state.left[h, 1 - new, 0] == x  # then its message was never made
        moved = everything or was_root or not same
        changed = moved or work.dirty[l] > 0 or work.dirty[r] > 0
        if x != root and (moved or work.dirty[l] == 2 or work.dirty[r] == 2):
            other = 1 - work.class_slot[h, x]
            row_l = class_row(n_tips, l, work.new_class_slot[l])
            row_r = class_row(n_tips, r, work.new_class_slot[r])
            out, now = class_row(n_tips, x, other), class_row(n_tips, x, 1 - other)
            sets = work.tip_sets[h]
            if _unite(sets[row_l], sets[row_r], sets[now], sets[out]) or everything:
                work.new_class_slot[x] = other
                work.dirty[x] = 2
                work.n_classes[h, out - n_tips] = number_classes(
                    work.class_of[h, row_l],
                    work.class_of[h, row_r],
                    data.code_sets.shape[0],
                    data.repeats,
                    work.class_of[h, out],
                    work.representative[h, out - n_tips],
                    work.hash_key,
                    work.hash_value,
                )
    return changed


@compiled
def _unite(a, b, now, out):
    """out = a ∪ b, sets of tips as bits; True if that is not what now holds."""
    differs = False
    for w in range(a.shape[0]):
        out[w] = a[w] | b[w]
        differs = differs or out[w] != now[w]
    return differs


@merged
def _fill_matrix(data, state, work, h, x):
    m = work.new_model_slot[0]
    length = state.length[h, 1 - state.slot[h], x]
    out = work.matrices[h, work.new_matrix_slot[x], x]
    values, right, left = work.eigenvalues[h, m], work.right[h, m], work.left[h, m]
    if values.shape[0] == 4:
        set_transition_4(length, data.n_categories, values, right, left, work.rates[h, m], out)
    else:
        set_transition(length, data.n_categories, values, right, left, work.rates[h, m], out)


@merged
def _fill_message(data, state, work, h, x):
    n_tips, n_patterns = data.tip_codes.shape
    n_codes, n_states = data.code_sets.shape
    width, new = data.width, 1 - state.slot[h]
    messages, matrix = work.messages[h], work.matrices[h, work.new_matrix_slot[x], x]
    out = message_at(n_tips, n_patterns, n_codes, width, x, work.new_message_slot[x])
    if x < n_tips:
        tip_message(messages, n_states, width, out, n_codes, matrix)
    else:
        l, r = state.left[h, new, x], state.right[h, new, x]
        left_at = message_at(n_tips, n_patterns, n_codes, width, l, work.new_message_slot[l])
        right_at = message_at(n_tips, n_patterns, n_codes, width, r, work.new_message_slot[r])
        left_class = work.class_of[h, class_row(n_tips, l, work.new_class_slot[l])]
        right_class = work.class_of[h, class_row(n_tips, r, work.new_class_slot[r])]
        row = class_row(n_tips, x, work.new_class_slot[x]) - n_tips
        first, count = work.representative[h, row], work.n_classes[h, row]
        if n_states == 4:
            message_4(messages, width, out, left_at, right_at, left_class, right_class, first, count, matrix)
        else:
            message(
                messages,
                n_states,
                width,
                out,
                left_at,
                right_at,
                left_class,
                right_class,
                first,
                count,
                matrix,
            )
        if data.rescale:
            exponent = work.exponents[h, work.new_message_slot[x], x - n_tips]
            child_exponents(_taken(work, h, n_tips, l), left_class, first, count, True, exponent)
            child_exponents(_taken(work, h, n_tips, r), right_class, first, count, False, exponent)
            rescale(messages, width, out, count, exponent)


@merged
def _taken(work, h, n_tips, child):
    """The powers of two taken out of a child's columns: none of a tip's."""
    size = work.exponents.shape[3] if child >= n_tips else 0
    return work.exponents[h, work.new_message_slot[child], max(child - n_tips, 0), :size]


@merged
def _at_root(data, state, work, h, root):
    n_tips, n_patterns = data.tip_codes.shape
    n_codes, n_states = data.code_sets.shape
    width, new = data.width, 1 - state.slot[h]
    l, r = state.left[h, new, root], state.right[h, new, root]
    messages, matrix = work.messages[h], work.matrices[h, work.new_matrix_slot[root], root]
    start, parameters = data.block_start, state.parameters[h, new]
    pi = parameters[start[FREQUENCY] : start[FREQUENCY] + n_states]
    own = message_at(n_tips, n_patterns, n_codes, width, 0, 0)
    tip_message(messages, n_states, width, own, n_codes, matrix)
    weights = work.category_weights[h, work.new_model_slot[0]]
    set_root_tip(pi, weights, width, n_codes, messages, own, work.root_tip)
    left_class = work.class_of[h, class_row(n_tips, l, work.new_class_slot[l])]
    right_class = work.class_of[h, class_row(n_tips, r, work.new_class_slot[r])]
    left_at = message_at(n_tips, n_patterns, n_codes, width, l, work.new_message_slot[l])
    right_at = message_at(n_tips, n_patterns, n_codes, width, r, work.new_message_slot[r])
    codes, site, exponent = data.tip_codes[0], work.site, work.site_exponent
    site_likelihoods(
        messages, n_states, width, codes, left_at, right_at, left_class, right_class, work.root_tip, site
    )
    exponent[:] = 0
    if data.rescale:
        child_exponents(_taken(work, h, n_tips, l), left_class, work.every, n_patterns, True, exponent)
        child_exponents(_taken(work, h, n_tips, r), right_class, work.every, n_patterns, False, exponent)
    if parameters[start[P_INVARIABLE]] > 0.0:
        add_invariable(parameters[start[P_INVARIABLE]], pi, data.constant_sets, site, exponent)
    return total_log_likelihood(site, exponent, data.weights, data.n_hidden)


@merged
def take_slots(state, work, h):
    """Accept: what the proposal wrote becomes the chain's own."""
    for x in range(work.new_message_slot.shape[0]):
        work.message_slot[h, x] = work.new_message_slot[x]
        work.matrix_slot[h, x] = work.new_matrix_slot[x]
        work.class_slot[h, x] = work.new_class_slot[x]
    work.model_slot[h] = work.new_model_slot[0]

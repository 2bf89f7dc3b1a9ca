"""Splits that a tree has to display, of all its taxa or of some (`phloem ml --constraint`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from phloem.errors import InputError
from phloem.tree.build import tree_from_parents
from phloem.tree.half_edges import half_edges, nexts, preorder, tree_of
from phloem.tree.match import likely_name, respelled
from phloem.tree.tree import Tree

_SHOWN = 5  # names in a sentence


class Constraint:
    """The non-trivial splits of a tree, which may have multifurcations and lack taxa; its root means nothing.

    A tree obeys where for each of them a branch parts the constraint's taxa in the same way; other taxa may
    be anywhere. taxa: of the trees that are to obey, whose tips are numbered and spelled so. Sets of tips are
    bits of an int. Errors: InputError for a taxon that is not among these, and where there is nothing to
    obey.
    """

    def __init__(self, tree: Tree, taxa: Sequence[str], file: str | None = None) -> None:
        tree = respelled(tree, taxa)
        self.tree, self.taxa, self.file = tree, tuple(taxa), file
        place = {name: i for i, name in enumerate(self.taxa)}
        _require_known(tree.taxa, place, file)
        self._numbers = [place[name] for name in tree.taxa]
        below = [1 << i for i in self._numbers] + [0] * (tree.n_nodes - tree.n_tips)
        for x in range(tree.n_nodes - 1):
            below[int(tree.parent[x])] |= below[x]
        self._all = below[-1]
        first = self._all & -self._all
        sides = {x if not x & first else self._all ^ x for x in below[:-1]}
        most = tree.n_tips - 2
        self.splits = tuple(sorted(x for x in sides if 2 <= x.bit_count() <= most))
        if not self.splits:
            hint = "Group four taxa or more, such as ((A,B),C,D); a split has two taxa at least on each side."
            raise InputError("the constraint has no split: there is nothing to obey", file=file, hint=hint)
        self._number = {x: k for k, x in enumerate(self.splits)}
        self._number |= {self._all ^ x: k for x, k in self._number.items()}

    @property
    def n_taxa(self) -> int:
        return self.tree.n_tips

    def sides(self) -> np.ndarray:
        """(n, T) int8 of every split: 0 and 1, and -1 of taxa that are free."""
        found = np.full((len(self.splits), len(self.taxa)), -1, np.int8)
        size = (len(self.taxa) + 7) // 8
        packed = np.frombuffer(b"".join(x.to_bytes(size, "little") for x in self.splits), np.uint8)
        bits = np.unpackbits(packed.reshape(-1, size), axis=1, bitorder="little")
        found[:, self._numbers] = bits[:, self._numbers]
        return found

    def missing(self, back: np.ndarray) -> tuple[int, ...]:
        """The splits that no branch of a tree (half_edges.HalfEdges.back) displays."""
        shown = self._shown(self._behind(back), back)
        return tuple(split for k, split in enumerate(self.splits) if not shown[k])

    def obeyed(self, back: np.ndarray) -> bool:
        return not self.missing(back)

    def names(self, split: int) -> str:
        """The smaller side, for people."""
        other = self._all ^ split
        side = min(split, other, key=int.bit_count)
        names = [name for i, name in enumerate(self.taxa) if side >> i & 1]
        return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")

    def regrafts(self, back: np.ndarray, pruned: np.ndarray, out: np.ndarray, radius: int) -> np.ndarray:
        """(n,) whether a tree that obeys still does after each of these regrafts (ml/moves.py), alone, by
        radius nodes at most."""
        behind = self._behind(back)
        shown = self._shown(behind, back)
        free = np.ones(len(pruned), bool)
        order = np.argsort(pruned, kind="stable")
        ends = np.flatnonzero(np.diff(pruned[order])) + 1
        for rows in np.split(order, ends) if len(order) else ():
            p = int(pruned[rows[0]])
            moved = behind[int(back[p])]
            if moved not in (0, self._all):
                allowed = self._reach(back, behind, dict(shown), p, moved, radius)
                free[rows] = [h in allowed for h in out[rows].tolist()]
        return free

    def interchanges(self, back: np.ndarray, branches: np.ndarray) -> np.ndarray:
        """(n, 2) whether a tree that obeys still does with these inner branches resolved in either other way
        (ml/moves.Interchange)."""
        n, behind = (len(back) + 6) // 4, self._behind(back)
        shown, free = self._shown(behind, back), np.ones((len(branches), 2), bool)
        for row, h in zip(free, branches.tolist()):
            lost = self._number.get(behind[h])
            if lost is not None and shown[lost] == 1:
                first = behind[int(back[nexts(h, n)[0]])]
                for k, g in enumerate(nexts(int(back[h]), n)):
                    row[k] = self._number.get(first | behind[int(back[g])]) == lost
        return free

    def _reach(
        self, back: np.ndarray, behind: list[int], shown: dict[int, int], p: int, moved: int, radius: int
    ) -> set[int]:
        """Half-edges of the branches to which the subtree beyond p may go. On the way there every branch
        loses what it showed, and shows it without the subtree on its near side."""
        n, allowed, broken = (len(back) + 6) // 4, set[int](), set[int]()

        def change(split: int | None, by: int) -> None:
            if split is not None:
                shown[split] = shown.get(split, 0) + by
                (broken.discard if shown[split] else broken.add)(split)

        def walk(g: int, left: int) -> None:
            if g < n or left == 0:
                return
            for h in nexts(g, n):
                own, new = self._number.get(behind[h]), self._number.get(behind[h] ^ moved)
                change(new, 1)
                if not broken:
                    allowed.update((h, int(back[h])))
                change(own, -1)
                walk(int(back[h]), left - 1)
                change(own, 1)
                change(new, -1)

        for a in nexts(p, n):
            own = self._number.get(behind[a])
            change(own, -1)
            walk(int(back[a]), radius)
            change(own, 1)
        return allowed

    def _behind(self, back: np.ndarray) -> list[int]:
        """Of every half-edge the constrained tips on its own side of its branch."""
        n, other = (len(back) + 6) // 4, back.tolist()
        behind = [0] * len(other)
        for i in self._numbers:
            behind[i] = 1 << i
        order = preorder(back).tolist()
        for h in reversed(order):
            if h >= n:
                a, b = nexts(h, n)
                behind[h] = behind[other[a]] | behind[other[b]]
        for h in order:
            behind[other[h]] = self._all ^ behind[h]
        return behind

    def _shown(self, behind: list[int], back: np.ndarray) -> Counter[int]:
        """How many branches show each split, by its number."""
        ends = np.flatnonzero(back > np.arange(len(back))).tolist()
        return Counter(k for h in ends if (k := self._number.get(behind[h])) is not None)

    def resolved(self, rng: np.random.Generator) -> Tree:
        """A random binary tree of all taxa that obeys: multifurcations are resolved by joining pairs, and
        free taxa come to branches, both drawn at random."""
        names: list[str | None] = [*self.tree.taxa, *[None] * (self.tree.n_nodes - self.tree.n_tips)]
        parent = self.tree.parent.tolist()
        children: dict[int, list[int]] = {}
        for x, above in enumerate(parent):
            children.setdefault(above, []).append(x)
        for x, own in list(children.items()):
            while x >= 0 and len(own) > 2:
                pair = [own.pop(int(rng.integers(len(own)))) for _ in range(2)]
                names.append(None)
                parent.append(x)
                own.append(len(names) - 1)
                for child in pair:
                    parent[child] = own[-1]
        root, free = parent.index(-1), sorted(set(self.taxa) - set(self.tree.taxa))
        for name in rng.permutation(free).tolist():
            x = int(rng.integers(len(names) - 1))
            x += x >= root
            names += [None, name]
            parent += [parent[x], len(names) - 2]
            parent[x] = len(names) - 2
        tree = tree_from_parents(names, parent, [0.1] * len(names), taxa=self.taxa, rooted=False)
        return tree_of(half_edges(tree, self.taxa), self.taxa)


def _require_known(names: Sequence[str], taxa: dict[str, int], file: str | None) -> None:
    unknown = [name for name in names if name not in taxa]
    if unknown:
        listed = ", ".join(f"'{name}'" for name in unknown[:_SHOWN]) + (
            ", …" if len(unknown) > _SHOWN else ""
        )
        near = likely_name(unknown[0], taxa)
        hint = f"Did you mean '{near}'?" if near else "Prune them from the constraint."
        raise InputError(
            f"in the constraint and not in the alignment: {listed}", file=file, taxon=unknown[0], hint=hint
        )

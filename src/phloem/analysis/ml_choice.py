"""`phloem ml --model auto`: the model of an alignment, or of every part that has none, before the search."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from phloem.analysis.ml_data import MlData
from phloem.analysis.ml_held import held_data
from phloem.analysis.ml_merge import merge_settings, merged
from phloem.analysis.model_file import require_gamma_used, usual_model
from phloem.errors import InputError
from phloem.likelihood.model_for_alignment import ModelReader
from phloem.likelihood.parts import in_part
from phloem.model.model import Model

if TYPE_CHECKING:
    from phloem.inference.ml.merging import Merging
    from phloem.inference.ml.model_choice import ChoiceSettings, ModelChoice
    from phloem.inference.ml.search_state import Told
    from phloem.inference.ml.searched import Fit
    from phloem.inference.ml.tree_search import SearchSettings
    from phloem.inference.ml.tree_starts import Start
    from phloem.io.journal import Journal


class Chosen(NamedTuple):
    """choices: by name of the part, "" where there are no parts. texts, models: of every part. start: where
    the search begins. data: with the parts that were merged; merging: None where none was to be."""

    choices: dict[str, ModelChoice]
    texts: list[str]
    models: list[Model]
    start: Start
    data: MlData
    merging: Merging | None = None


def choose(
    data: MlData,
    start: Start,
    settings: ChoiceSettings,
    search: SearchSettings,
    told: Told | None,
    journal: Journal | None = None,
) -> Chosen:
    """One alignment's model on the tree of a climb from the start; of parts each model alone with branch
    lengths of its own, all on the tree of one climb of all parts under their usual models. journal: of fits
    that are done, which a killed run does not do again.

    Errors: as choose_model, with the part; InputError where every part has a model.
    """
    from phloem.inference.ml.kept_fits import KeptFits
    from phloem.inference.ml.model_choice import choose_model
    from phloem.inference.ml.optimum import PartitionedOptimum
    from phloem.inference.ml.tree_starts import Start

    readers = [ModelReader(part.alignment, data.settings.gamma) for part in data.parts]
    _require_obeyed(data, readers, settings)
    kept = KeptFits.read(journal)
    if not data.partitioned:
        climb = data.constraint is None and not start.held
        if data.constraint is not None:
            start = _obeying(data, start, search)
        choice = choose_model(data.distinct[0], start, settings, search, readers[0], told, climb, kept)
        fit, text = choice.winner.fit, choice.winner.text
        origin = f"the tree on which the model was chosen, {'a climb from ' * climb}{choice.origin}"
        there = Start(fit.tree, origin, fit.parameters, start.held)
        return Chosen({"": choice}, [text], [readers[0](text)], there, data)
    if all(part.model_text is not None for part in data.parts):
        raise InputError(
            "every part has a model already, and --model auto chooses those of parts that have none",
            file=data.settings.partitions,
            hint="Leave --model out, or the models out of the partition file.",
        )
    texts = [part.model_text or usual_model(part.alignment.alphabet.kind) for part in data.parts]
    begun = _begun(data, [reader(text) for reader, text in zip(readers, texts)], start, search)
    merging, merge = None, merge_settings(data.settings)
    tree, common_models = begun.tree, ", ".join(dict.fromkeys(texts))
    if merge is not None:
        assert isinstance(begun, PartitionedOptimum)
        data, merging = merged(data, begun, merge, told, kept.of("merging"))
        readers = [ModelReader(part.alignment, data.settings.gamma) for part in data.parts]
        texts = [part.model_text or "" for part in data.parts]
    common = Start(tree, f"{start.origin}, of all parts under {common_models}", held=start.held)
    choices = {}
    for i, (part, alignment) in enumerate(zip(data.parts, data.distinct)):
        if part.model_text is None:
            with in_part(part.name):
                own = kept.of(f"part {part.name}")
                choice = choose_model(alignment, common, settings, search, readers[i], told, False, own)
            choices[part.name], texts[i] = choice, choice.winner.text
    models = [reader(text) for reader, text in zip(readers, texts)]
    origin = f"the tree on which models were chosen, {'a climb from ' * (not start.held)}{start.origin}"
    return Chosen(choices, texts, models, Start(tree, origin, held=start.held), data, merging)


def _begun(data: MlData, models: Sequence[Model], start: Start, search: SearchSettings) -> Fit:
    """All parts on the tree of a climb, or on the one that is held."""
    from phloem.inference.ml.tree_search import climbed_once

    if start.held:
        return held_data(data, models).fit()[0]
    return climbed_once(data.searched(models), start, search)


def _require_obeyed(data: MlData, readers: Sequence[ModelReader], settings: ChoiceSettings) -> None:
    """InputError for sets, and for medians of +G, of which no model would be; before anything is fitted."""
    from phloem.inference.ml.model_choice import bases_of, rates_of, require_used

    texts = list[tuple[ModelReader, str]]()
    for reader, part in zip(readers, data.parts):
        if part.model_text is not None:
            texts.append((reader, part.model_text))
            continue
        with in_part(part.name) if data.partitioned else nullcontext():
            tried = bases_of(part.alignment.alphabet, settings)
            require_used(tried, settings)
        gammas = [f"+{name}" for name in rates_of(settings) if "G" in name]
        texts += [(reader, base.text + ("" if base.whole else "".join(gammas[:1]))) for base in tried]
    if data.settings.gamma != "mean":
        require_gamma_used(data.settings.gamma, (reader(text) for reader, text in texts))


def _obeying(data: MlData, start: Start, search: SearchSettings) -> Start:
    """The tree of a climb under the usual model that keeps to the constraint: the choice's own does not."""
    from phloem.inference.ml.tree_search import climbed_once
    from phloem.inference.ml.tree_starts import Start

    text = usual_model(data.alignment.alphabet.kind)
    fit = climbed_once(data.searched([ModelReader(data.alignment, data.settings.gamma)(text)]), start, search)
    return Start(fit.tree, f"a climb under {text} from {start.origin}")

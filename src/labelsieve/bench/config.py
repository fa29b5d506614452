"""Configuration of an experiment, read from TOML and validated."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from labelsieve._text import closest, count, near
from labelsieve.bench import RunError
from labelsieve.io.options import ReadOptions
from labelsieve.methods import METHODS
from labelsieve.metrics import METRICS, PROTOCOL_METRICS

#: References that do not rank features: label frequencies, label frequencies with every label predicted, all features.
NO_FEATURES, EVERY_LABEL, ALL_FEATURES = "no-features", "every-label", "all-features"
UNRANKED = (NO_FEATURES, EVERY_LABEL, ALL_FEATURES)
#: Classifier that scores labels by the weights of the ranking method.
OWN_WEIGHTS = "own-weights"
RANDOM = "random-ranking"
#: Stands for every method of the package.
EVERY = "*"

Role = Literal["method", "ablation", "sweep", "reference"]
Percent = Annotated[float, Field(gt=0, le=100)]
Count = Annotated[int, Field(ge=1)]
#: Range that NumPy and scikit-learn accept.
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Rounding = Literal["round", "floor", "up"]


class _Spec(BaseModel):
    """Part of a configuration that rejects unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class DatasetSpec(_Spec):
    """Dataset from the catalogue or from files, with the options of `read`."""

    name: str = Field(min_length=1)
    path: tuple[str, ...] = ()
    labels: str | int | None = None
    candidates: str | None = None
    ignore: str | tuple[str, ...] | None = None
    nominal: str | None = None
    missing: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _only_a_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("path", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _options_are_for_files(self) -> Self:
        given = self.options.given
        if not self.path and given:
            raise ValueError(f"{', '.join(given)}: only allowed for files; add path or remove this key")
        return self

    @property
    def options(self) -> ReadOptions:
        """Options of `read`."""
        return ReadOptions(**self.model_dump(exclude={"name", "path"}))


class NoiseSpec(_Spec):
    """Noise model that turns true labels into candidates. ``given`` uses the candidates in the data."""

    model: Literal["flip", "relative", "count", "instance", "label", "missing", "given"] = "flip"
    rate: Rate | None = None

    @model_validator(mode="after")
    def _rate_fits_model(self) -> Self:
        if self.model == "given":
            if self.rate is not None:
                raise ValueError("rate: not allowed for the model 'given'; remove it")
        elif self.rate is None:
            raise ValueError(f"rate: required by the model {self.model!r}; for example, write rate = 0.2")
        elif self.model not in ("relative", "count") and self.rate > 1:
            raise ValueError(f"rate: expected a probability in [0, 1], got {self.rate:g}")
        elif self.model == "count" and self.rate != int(self.rate):
            raise ValueError(f"rate: expected an integer number of labels, got {self.rate:g}")
        return self

    @property
    def label(self) -> str:
        """Short name of the noise."""
        return self.model if self.rate is None else f"{self.model} {self.rate:g}"


class MethodSpec(_Spec):
    """Method with a name and parameters: a slug or an import path ``package.module:Class``."""

    name: str = Field(min_length=1)
    method: str = Field(min_length=1)
    params: dict[str, Any] = {}
    role: Role = "method"

    @model_validator(mode="before")
    @classmethod
    def _named_by_method(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"method": value}
        if isinstance(value, dict) and "method" in value and "name" not in value:
            value = {"name": _default_name(value), **value}
        return value


def _default_name(entry: dict[str, Any]) -> str:
    params = entry.get("params")
    settings = params.items() if isinstance(params, dict) else ()
    return " ".join([str(entry["method"]), *(f"{key}={_short(value)}" for key, value in settings)])


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


class SweepSpec(_Spec):
    """Method with every combination of parameter values."""

    method: str = Field(min_length=1)
    parameters: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(min_length=1)
    params: dict[str, Any] = {}

    def methods(self) -> tuple[MethodSpec, ...]:
        """Return one method for each combination of values."""
        entries = []
        for values in itertools.product(*self.parameters.values()):
            varied = dict(zip(self.parameters, values, strict=True))
            name = _default_name({"method": self.method, "params": varied})
            params = {**self.params, **varied}
            entries.append(MethodSpec(name=name, method=self.method, params=params, role="sweep"))
        return tuple(entries)


class ClassifierSpec(_Spec):
    """Classifier with parameters: ``linear-svm``, ``rbf-svm``, ``ml-knn``, ``own-weights`` or an import path."""

    name: str = Field(min_length=1)
    classifier: str = Field(min_length=1)
    params: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _named_by_classifier(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"classifier": value}
        if isinstance(value, dict) and "classifier" in value:
            value = {"name": value["classifier"], **value}
        return value


class MetricSpec(_Spec):
    """Built-in metric, or user-defined metric with an import path ``package.module:function``.

    A user-defined metric is called with the true labels and the scores or predictions of a classifier, both of shape
    (n_samples, n_labels). Reports do not import it, so the configuration has to specify its direction.
    """

    #: Also part of file names.
    name: str = Field(pattern=r"^\w+$")
    metric: str
    direction: Literal["higher", "lower"]
    needs: Literal["scores", "predictions"]

    @model_validator(mode="before")
    @classmethod
    def _named_by_metric(cls, value: Any) -> Any:
        if isinstance(value, str) and value in METRICS:
            known = METRICS[value]
            return {"name": value, "metric": value, "direction": known.direction, "needs": known.needs}
        if isinstance(value, str) and ":" not in value:
            raise ValueError(f"expected a metric, got {value!r}; {closest(value, METRICS)}")
        if isinstance(value, str):
            example = f'{{ metric = "{value}", direction = "higher", needs = "scores" }}'
            raise ValueError(f"a user-defined metric must set direction and needs, for example {example}")
        if isinstance(value, dict) and isinstance(metric := value.get("metric"), str):
            if ":" not in metric:
                raise ValueError(f"metric: expected an import path module:function, got {metric!r}")
            value = {"name": metric.partition(":")[2], **value}
            if value["name"] in METRICS:
                raise ValueError(f"name: {value['name']!r} is a built-in metric; choose another name")
        return value

    @model_serializer(mode="wrap")
    def _in_short(self, whole: SerializerFunctionWrapHandler) -> Any:
        return whole(self) if self.is_user_defined else self.name

    @property
    def is_user_defined(self) -> bool:
        """Return True if the metric is not built in."""
        return ":" in self.metric


class Sizes(_Spec):
    """Sizes of feature subsets: percentages, or numbers of features for some datasets."""

    percent: tuple[Percent, ...] = (5, 10, 20)
    counts: dict[str, tuple[Count, ...]] = {}
    rounding: Rounding = "round"

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        for key, values in {"percent": self.percent, **self.counts}.items():
            if not values or list(values) != sorted(set(values)):
                raise ValueError(f"{key}: expected increasing sizes, got {list(values)!r}")
        return self


class Conventions(_Spec):
    """Choices that papers leave open, with the defaults of the protocol.

    If given, `noise`, `classifiers` and `rounding` replace those of the experiment.
    """

    name: str = Field(min_length=1)
    test_labels: Literal["clean", "noisy", "noisy-f1"] = "clean"
    train_labels: Literal["candidates", "clean"] = "candidates"
    one_class: Literal["lowest", "constant"] = "lowest"
    absent_labels: Literal["keep", "skip"] = "keep"
    ranking_scores: Literal["decision", "hard"] = "decision"
    empty_rows: Literal["skip", "perfect"] = "skip"
    ties: Literal["errors", "index"] = "errors"
    coverage: Literal["zero-based", "count", "one-based", "excess"] = "zero-based"
    f1_undefined: Literal[0, 1, "skip"] = 0
    folds: Literal["shuffled", "stratified", "consecutive"] = "shuffled"
    noise: Annotated[tuple[NoiseSpec, ...], Field(min_length=1)] | None = None
    classifiers: Annotated[tuple[ClassifierSpec, ...], Field(min_length=1)] | None = None
    rounding: Rounding | None = None

    @model_validator(mode="before")
    @classmethod
    def _named_by_choices(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        defaults = {key: field.default for key, field in cls.model_fields.items()}
        choices = [
            f"{key} {choice}".replace("_", " ")
            for key, choice in value.items()
            if isinstance(choice, str | int) and choice != defaults.get(key, choice)
        ]
        return {"name": ", ".join(choices) or "defaults", **value}

    def choices(self) -> dict[str, Any]:
        """Return the choices that affect judgements, without defaults."""
        elsewhere = {"name", "folds", "noise", "classifiers", "rounding"}
        return self.model_dump(exclude=elsewhere, exclude_defaults=True)


class Judge(NamedTuple):
    """Classifier with one set of conventions."""

    name: str
    classifier: ClassifierSpec
    conventions: Conventions


class Limits(_Spec):
    """Time and memory limits of a cell, None for unlimited. A cell that exceeds them fails."""

    seconds: Annotated[float, Field(gt=0)] | None = None
    memory_mib: Annotated[float, Field(gt=0)] | None = None


class Experiment(_Spec):
    """Configuration of an experiment."""

    #: Also the name of the run folder.
    name: str
    title: str = ""
    seeds: tuple[Seed, ...] = Field((0,), min_length=1)
    folds: int = Field(10, ge=2)
    datasets: tuple[DatasetSpec, ...] = Field(min_length=1)
    noise: tuple[NoiseSpec, ...] = Field((NoiseSpec(rate=0.2),), min_length=1)
    methods: tuple[MethodSpec, ...] = ()
    ablation: tuple[MethodSpec, ...] = ()
    sweeps: tuple[SweepSpec, ...] = ()
    references: tuple[MethodSpec, ...] = ()
    random_draws: int = Field(3, ge=1)
    classifiers: tuple[ClassifierSpec, ...] = Field(
        (ClassifierSpec(name="linear-svm", classifier="linear-svm"),), min_length=1
    )
    sizes: Sizes = Sizes()
    metrics: tuple[MetricSpec, ...] = Field(
        tuple(MetricSpec.model_validate(name) for name in PROTOCOL_METRICS), min_length=1
    )
    #: One or several sets of conventions to compare.
    conventions: tuple[Conventions, ...] = Field((Conventions(name="defaults"),), min_length=1)
    #: Stored weights allow judging a ranking by own-weights later.
    store_weights: bool = True
    limits: Limits = Limits()
    control: str = ""
    #: Folder of the configuration file, the base of relative paths and user-defined modules.
    folder: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _expand_every_method(cls, given: Any) -> Any:
        """Replace ``"*"`` by all methods of the package that are not listed."""
        if not isinstance(given, dict):
            return given
        lists = (given.get(key) for key in ("methods", "references"))
        methods, references = (value if isinstance(value, list | tuple) else () for value in lists)
        if EVERY not in methods:
            return given
        named = [
            entry.get("method") if isinstance(entry, dict) else entry for entry in (*methods, *references)
        ]
        others = [slug for slug in METHODS if slug not in named]
        place = methods.index(EVERY)
        return {**given, "methods": [*methods[:place], *others, *methods[place + 1 :]]}

    @field_validator("conventions", mode="before")
    @classmethod
    def _one_table_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, dict) else value

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, value: str) -> str:
        if re.fullmatch(r"[\w.-]+", value) is None or not value.strip("."):
            raise ValueError(f"expected only letters, digits, '_', '-' and '.', got {value!r}")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [method.name for method in self.all_methods()]
        if not names:
            raise ValueError("methods: expected at least one method, sweep or reference")
        for what, given in (
            ("datasets", [dataset.name for dataset in self.datasets]),
            ("methods", names),
            ("classifiers", [classifier.name for classifier in self.classifiers]),
            ("conventions", [conventions.name for conventions in self.conventions]),
            ("judgements", [judge.name for judge in self.judges()]),
            ("noise", [noise.label for noise in self.noise]),
            ("seeds", [str(seed) for seed in self.seeds]),
            ("metrics", list(self.metric_names)),
        ):
            twice = next((name for name in given if given.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"{what}: duplicate {twice!r}; use a unique name for each entry")
        unknown = set(self.sizes.counts) - {dataset.name for dataset in self.datasets}
        if unknown:
            raise ValueError(f"sizes.counts: {min(unknown)!r} is not one of the datasets")
        if len(self.ablation) == 1:
            raise ValueError("ablation: expected at least 2 variants, the full one first, got 1")
        compared = [method.name for method in self.methods or self.ablation]
        if self.control and self.control not in compared:
            raise ValueError(f"control: expected one of the methods, got {self.control!r}")
        return self

    def all_methods(self) -> tuple[MethodSpec, ...]:
        """Return methods, variants, sweeps and references in table order."""
        return (
            *self.methods,
            *(method.model_copy(update={"role": "ablation"}) for method in self.ablation),
            *(method for sweep in self.sweeps for method in sweep.methods()),
            *(method.model_copy(update={"role": "reference"}) for method in self.references),
        )

    def judges(self) -> tuple[Judge, ...]:
        """Return all classifiers with all sets of conventions in table order."""
        found = []
        for conventions in self.conventions:
            classifiers = conventions.classifiers or self.classifiers
            for classifier in classifiers:
                parts = [conventions.name] if len(self.conventions) > 1 else []
                parts += [classifier.name] if len(classifiers) > 1 or not parts else []
                found.append(Judge(", ".join(parts), classifier, conventions))
        return tuple(found)

    def noises(self) -> tuple[NoiseSpec, ...]:
        """Return the noise models of all conventions."""
        own = (noise for conventions in self.conventions for noise in conventions.noise or ())
        return tuple(dict.fromkeys((*self.noise, *own)))

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of the metrics in table order."""
        return tuple(metric.name for metric in self.metrics)

    @property
    def directions(self) -> dict[str, Literal["higher", "lower"]]:
        """Direction of better values by metric."""
        return {metric.name: metric.direction for metric in self.metrics}

    def import_paths(self) -> tuple[str, ...]:
        """Return the import paths of user-defined code."""
        named = (
            *(method.method for method in self.all_methods()),
            *(judge.classifier.classifier for judge in self.judges()),
            *(metric.metric for metric in self.metrics),
        )
        return tuple(dict.fromkeys(name for name in named if ":" in name))

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration as plain values."""
        return self.model_dump(mode="json")


_PROFILE_FILES = sorted((files("labelsieve.bench") / "profiles").iterdir(), key=lambda item: item.name)
#: Name of a built-in profile -> its file.
PROFILES: dict[str, Any] = {item.name.removesuffix(".toml"): item for item in _PROFILE_FILES}


def load_experiment(source: str | Path) -> Experiment:
    """Load a built-in profile or a TOML file."""
    path = Path(source)
    if str(source) in PROFILES:
        return parse_experiment(PROFILES[str(source)].read_text("utf-8"), name=str(source))
    if not path.is_file():
        raise RunError(
            f"expected a profile or a TOML file, got {str(source)!r}; {closest(str(source), PROFILES)}"
        )
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: expected a TOML file in UTF-8, got an error ({error}).") from None
    return parse_experiment(text, name=path.stem, folder=path.resolve().parent, shown=str(path))


def restrict(experiment: Experiment, datasets: Sequence[str]) -> Experiment:
    """Restrict an experiment to some datasets, keeping the keys of its cells."""
    known = [dataset.name for dataset in experiment.datasets]
    for name in datasets:
        if name not in known:
            raise RunError(
                f"--datasets: expected a dataset of {experiment.name}, got {name!r}; {closest(name, known)}"
            )
    kept = tuple(spec for spec in experiment.datasets if spec.name in datasets)
    counts = {name: sizes for name, sizes in experiment.sizes.counts.items() if name in datasets}
    sizes = experiment.sizes.model_copy(update={"counts": counts})
    return experiment.model_copy(update={"datasets": kept, "sizes": sizes})


def parse_experiment(
    text: str, *, name: str, folder: Path | None = None, shown: str | None = None
) -> Experiment:
    """Parse and validate a configuration, named `shown` in errors."""
    shown = shown or name
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise RunError(f"{shown}: not valid TOML: {error}") from None
    name = re.sub(r"[^\w.-]", "-", name)
    given = {"name": name, **content, "folder": None if folder is None else str(folder)}
    return build_experiment(given, shown)


def build_experiment(given: dict[str, Any], shown: str) -> Experiment:
    """Build an experiment from plain values, or raise an error with the invalid key."""
    try:
        return Experiment.model_validate(given)
    except ValidationError as error:
        raise RunError(f"{shown}: {_first_problem(error)}") from None


def _first_problem(error: ValidationError) -> str:
    """Describe the first problem, with unknown keys before missing ones because a typo causes both."""
    first = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    key = ".".join(str(part) for part in first["loc"])
    more = error.error_count() - 1
    rest = f" ({count(more, 'more problem')})" if more else ""
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        known = {name for part in _Spec.__subclasses__() for name in part.model_fields}
        meant = near(str(first["loc"][-1]), sorted(known))
        message = "unknown key" + (f"; did you mean {meant!r}?" if meant else "")
    elif first["type"] == "missing":
        message = "this key is required"
    elif first["type"] != "value_error":
        message = f"{message[:1].lower()}{message[1:]}, got {first['input']!r}"
    return f"{key + ': ' if key else ''}{message}{rest}"

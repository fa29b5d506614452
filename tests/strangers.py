"""Four tables such as strangers bring, made by code: what decides the labels, and which are wrong, is known.

Every label follows one or two columns with some noise; all other columns say nothing about any label. Then a share of
the rows gets one label more, drawn from those that it does not have: these are the wrong ones.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

#: Share of the rows that get a wrong label.
WRONG = 0.12


@dataclass(frozen=True)
class Stranger:
    """A file, how to read it, and what is true of it."""

    path: Path
    #: Arguments of `read`.
    options: dict
    #: Columns that decide the labels.
    planted: frozenset
    #: Wrong candidates: the row, counted from 0, and the label.
    wrong: frozenset
    #: Expected roles of the interesting columns.
    roles: dict
    label_names: tuple
    id_column: str | None


def make_strangers(folder, n_rows=1200, random_state=0):
    """Write all four; returns them by name."""
    makers = {
        "tickets": make_tickets,
        "songs": make_songs,
        "patients": make_patients,
        "products": make_products,
    }
    return {name: make(Path(folder), n_rows, random_state) for name, make in makers.items()}


def _chance(effect, base=-1.5, strength=2.0):
    """Probability of a label, given what speaks for it in standard deviations."""
    return 1 / (1 + np.exp(-(base + strength * effect)))


def _standard(values):
    values = np.asarray(values, dtype=float)
    return (values - values.mean()) / values.std()


def _labels(rng, chances):
    """True labels and candidates with wrong ones; returns names, candidates and the wrong places."""
    names = tuple(sorted(chances))
    truth = np.column_stack([rng.random(len(chances[name])) < chances[name] for name in names])
    candidates, wrong = truth.copy(), set()
    for row in np.flatnonzero(rng.random(len(truth)) < WRONG):
        free = np.flatnonzero(~truth[row])
        if free.size:
            label = rng.choice(free)
            candidates[row, label] = True
            wrong.add((int(row), names[label]))
    return names, candidates, frozenset(wrong)


def _tag_lists(names, candidates):
    return [[name for name, is_there in zip(names, row, strict=True) if is_there] for row in candidates]


def _holes(rng, values, share):
    """The values as objects, some of them missing."""
    values = np.asarray(values, dtype=object)
    values[rng.random(len(values)) < share] = None
    return values


def make_tickets(folder, n_rows=1200, random_state=0):
    """Support tickets in a CSV file with semicolons, decimal commas and German dates; tags parted by commas."""
    rng = np.random.default_rng([random_state, 1])
    minutes = rng.integers(0, 2 * 365 * 24 * 60, n_rows)
    opened = np.datetime64("2023-01-01") + minutes.astype("timedelta64[m]")
    weekend = ((opened.astype("datetime64[D]").astype(int) + 3) % 7) >= 5
    amount = rng.gamma(2.0, 40.0, n_rows).round(2)
    product = rng.choice(["app", "api", "web", "printer", "router"], n_rows)
    channel = rng.choice(["mail", "phone", "chat"], n_rows, p=[0.5, 0.3, 0.2])
    chances = {
        "billing": _chance(_standard(amount)),
        "bug": _chance(2.0 * np.isin(product, ["app", "api"])),
        "hardware": _chance(2.0 * np.isin(product, ["printer", "router"])),
        "complaint": _chance(2.0 * (channel == "phone")),
        "on-call": _chance(2.0 * weekend),
    }
    names, candidates, wrong = _labels(rng, chances)
    words = [
        "hello", "please", "still", "since", "today", "help", "again", "thanks", "waiting", "nothing", "works",
    ]  # fmt: skip
    frame = pd.DataFrame(
        {
            "ticket_id": [f"T-{number:05d}" for number in rng.permutation(90_000)[:n_rows]],
            "opened": [pd.Timestamp(moment).strftime("%d.%m.%Y %H:%M") for moment in opened],
            "channel": channel,
            "product": product,
            "amount": [f"{value:.2f}".replace(".", ",") for value in amount],
            "waiting_hours": _holes(
                rng, [f"{v:.1f}".replace(".", ",") for v in rng.gamma(2, 5, n_rows)], 0.08
            ),
            "agent": rng.choice([f"agent {number}" for number in range(25)], n_rows),
            "vip": rng.choice(["yes", "no"], n_rows),
            "rating": _holes(rng, rng.integers(1, 6, n_rows), 0.3),
            "subject": [" ".join(rng.choice(words, rng.integers(4, 9))) for _ in range(n_rows)],
            "tenant": "main",
            "tags": [",".join(tags) for tags in _tag_lists(names, candidates)],
        }
    )
    path = folder / "tickets.csv"
    frame.to_csv(path, index=False, sep=";")
    roles = {
        "ticket_id": "id", "opened": "date", "channel": "category", "product": "category", "amount": "number",
        "waiting_hours": "number", "agent": "category", "vip": "boolean", "rating": "number", "subject": "text",
        "tenant": "constant", "tags": "label",
    }  # fmt: skip
    planted = frozenset({"opened", "channel", "product", "amount"})
    return Stranger(path, {}, planted, wrong, roles, names, "ticket_id")


def make_songs(folder, n_rows=1200, random_state=0):
    """Songs in a TSV file of UTF-16, as a spreadsheet saves it; genres parted by bars."""
    rng = np.random.default_rng([random_state, 2])
    tempo, energy = rng.normal(120, 25, n_rows).round(1), rng.beta(2, 2, n_rows).round(3)
    year = rng.integers(1960, 2024, n_rows)
    explicit = rng.random(n_rows) < 0.3
    chances = {
        "ballad": _chance(-_standard(tempo)),
        "classic": _chance(-_standard(year)),
        "dance": _chance(_standard(tempo)),
        "hip-hop": _chance(2.0 * explicit),
        "metal": _chance(_standard(energy)),
    }
    names, candidates, wrong = _labels(rng, chances)
    syllables = ["la", "mi", "so", "ré", "do", "ti", "na", "ku"]
    released = np.datetime64("1850-01-01") + rng.integers(0, 60_000, n_rows).astype("timedelta64[D]")
    frame = pd.DataFrame(
        {
            "title": ["".join(rng.choice(syllables, 4)).title() + f" {number}" for number in range(n_rows)],
            "artist": rng.choice([f"The {number}s" for number in range(40)], n_rows),
            "year": year,
            "tempo": tempo,
            "energy": _holes(rng, energy, 0.03),
            "loudness": rng.normal(-8, 3, n_rows).round(2),
            "key": rng.choice(["C", "D", "E", "F", "G", "A", "B"], n_rows),
            "explicit": np.where(explicit, "TRUE", "FALSE"),
            "plays": [f"{number:,}" for number in rng.integers(1000, 10_000_000, n_rows)],
            "score_printed": [str(day) for day in released],
            "genres": ["|".join(tags) for tags in _tag_lists(names, candidates)],
        }
    )
    path = folder / "songs.tsv"
    frame.to_csv(path, index=False, sep="\t", encoding="utf-16")
    roles = {
        "title": "text", "artist": "category", "year": "number", "energy": "number", "key": "category",
        "explicit": "boolean", "plays": "number", "score_printed": "date", "genres": "label",
    }  # fmt: skip
    return Stranger(path, {}, frozenset({"year", "tempo", "energy", "explicit"}), wrong, roles, names, None)


def make_patients(folder, n_rows=1200, random_state=0):
    """Patients in an Excel workbook; a column of yes and no for every symptom."""
    rng = np.random.default_rng([random_state, 3])
    temperature, oxygen = rng.normal(37.3, 0.9, n_rows).round(1), rng.normal(95, 3, n_rows).round(0)
    smoker = rng.random(n_rows) < 0.35
    born = np.datetime64("1925-01-01") + rng.integers(0, 29_000, n_rows).astype("timedelta64[D]")
    chances = {
        "symptom_confusion": _chance(-_standard(born.astype("datetime64[D]").astype(int))),
        "symptom_cough": _chance(2.0 * smoker),
        "symptom_dyspnoea": _chance(-_standard(oxygen)),
        "symptom_fever": _chance(_standard(temperature)),
    }
    names, candidates, wrong = _labels(rng, chances)
    frame = pd.DataFrame(
        {
            "Patient No": rng.permutation(100_000)[:n_rows] + 100_000,
            "born": pd.to_datetime(born),
            "sex": rng.choice(["f", "m", "d"], n_rows, p=[0.5, 0.48, 0.02]),
            "smoker": np.where(smoker, "yes", "no"),
            "temperature °C": temperature,
            "oxygen %": _holes(rng, oxygen, 0.05),
            "pulse": rng.normal(78, 12, n_rows).round(0),
            "CRP": _holes(rng, rng.gamma(1.5, 10, n_rows).round(1), 0.4),
            "ward": rng.choice(["A1", "A2", "B1", "C3"], n_rows),
            "insured since": pd.to_datetime(
                np.datetime64("1990-01-01") + rng.integers(0, 12_000, n_rows).astype("timedelta64[D]")
            ),
            **{name: np.where(column, "yes", "no") for name, column in zip(names, candidates.T, strict=True)},
        }
    )
    path = folder / "patients.xlsx"
    frame.to_excel(path, index=False)
    roles = {
        "Patient No": "id", "born": "date", "sex": "category", "smoker": "boolean", "CRP": "number", "ward": "category",
        "insured since": "date", "symptom_cough": "label",
    }  # fmt: skip
    planted = frozenset({"born", "smoker", "temperature °C", "oxygen %"})
    return Stranger(path, {"labels": "symptom_*"}, planted, wrong, roles, names, "Patient No")


def make_products(folder, n_rows=1200, random_state=0):
    """Products in a CSV file with a byte order mark; categories as JSON lists, prices with their currency."""
    rng = np.random.default_rng([random_state, 4])
    price, weight = rng.lognormal(3, 1, n_rows).round(2), rng.gamma(2, 1.5, n_rows).round(3)
    material = rng.choice(["wood", "steel", "cotton", "plastic", "glass"], n_rows)
    rooms = [["kitchen"] if rng.random() < 0.4 else [] for _ in range(n_rows)]
    rooms = [own + (["garden"] if rng.random() < 0.3 else []) for own in rooms]
    in_garden = np.array(["garden" in own for own in rooms])
    chances = {
        "Clothes & Shoes": _chance(2.0 * (material == "cotton")),
        "Furniture": _chance(_standard(weight)),
        "Luxury": _chance(_standard(np.log(price))),
        "Outdoor": _chance(2.0 * in_garden),
        "Tools": _chance(2.0 * (material == "steel")),
    }
    names, candidates, wrong = _labels(rng, chances)
    frame = pd.DataFrame(
        {
            "sku": [
                f"{letter}{number}"
                for letter, number in zip(rng.choice([*"ABC"], n_rows), range(n_rows), strict=True)
            ],
            "price": [f"€ {value:,.2f}" for value in price],
            "weight_kg": weight,
            "material": _holes(rng, material, 0.04),
            "rooms": [json.dumps(own) for own in rooms],
            "brand": rng.choice([f"brand {number}" for number in range(60)], n_rows),
            "listed": [
                str(np.datetime64("2015-01-01") + np.timedelta64(int(days), "D"))
                for days in rng.integers(0, 3000, n_rows)
            ],
            "in_stock": rng.choice([0, 1], n_rows),
            "returns": rng.poisson(3, n_rows),
            "zip": [f"{number:05d}" for number in rng.integers(1000, 1020, n_rows)],
            "categories": [json.dumps(tags) for tags in _tag_lists(names, candidates)],
        }
    )
    path = folder / "products.csv"
    frame.to_csv(path, index=False, encoding="utf-8-sig")
    roles = {
        "sku": "id", "price": "number", "material": "category", "rooms": "tags", "brand": "category", "listed": "date",
        "in_stock": "boolean", "returns": "number", "zip": "category", "categories": "label",
    }  # fmt: skip
    planted = frozenset({"price", "weight_kg", "material", "rooms"})
    return Stranger(path, {"labels": "categories"}, planted, wrong, roles, names, "sku")

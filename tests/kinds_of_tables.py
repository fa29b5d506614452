"""Small tables of the shapes that people have, with what each column holds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

WORDS = {
    "Action": ("fight", "chase", "agent", "explosion"),
    "Comedy": ("joke", "wedding", "neighbour", "prank"),
    "Horror": ("haunted", "curse", "blood", "ghost"),
    "Drama": ("family", "secret", "illness", "court"),
    "Science Fiction": ("robot", "planet", "future", "alien"),
}
FILLER = (
    *(
        "a",
        "young",
        "old",
        "man",
        "woman",
        "city",
        "house",
        "returns",
        "finds",
        "must",
        "his",
        "her",
        "new",
        "the",
    ),
    *("story", "of", "long", "lost", "day", "night", "friend"),
)


@dataclass(frozen=True)
class Kind:
    """A table, how to read it, the role of each column, and a few labels."""

    frame: pd.DataFrame
    roles: dict[str, str]
    labels: set[str]
    options: dict[str, Any] = field(default_factory=dict)


def tags_of_rows(rng, names, n_rows, most=3):
    """Draw sets of tags; the first names are the most frequent."""
    share = 1 / np.arange(1, len(names) + 1)
    share /= share.sum()
    sizes = rng.integers(1, most + 1, n_rows)
    return [sorted(map(str, rng.choice(names, size, replace=False, p=share))) for size in sizes]


def texts_of(rng, tags, words=WORDS, length=18):
    """Write a text for each set of tags, with words of some of them."""
    found = []
    for row in tags:
        own = [rng.choice(words[tag]) for tag in row if tag in words for _ in range(2)]
        text = [*rng.choice(FILLER, length), *own]
        found.append(" ".join(rng.permutation(text)).capitalize() + ".")
    return found


def films(n_rows=240, seed=0):
    rng = np.random.default_rng(seed)
    tags = tags_of_rows(rng, [*WORDS], n_rows)
    number = {name: 10 + place for place, name in enumerate(WORDS)}
    frame = pd.DataFrame(
        {
            "id": rng.permutation(n_rows) + 100,
            "title": [f"The {rng.choice(FILLER)} {rng.choice(FILLER)} {k}" for k in range(n_rows)],
            "overview": texts_of(rng, tags),
            "genres": [repr([{"id": number[tag], "name": tag} for tag in row]) for row in tags],
            "homepage": [f"http://www.films.org/{k}" if k % 3 else "" for k in range(n_rows)],
            "poster_path": [f"/{k:05x}aB.jpg" for k in range(n_rows)],
            "budget": [f"${int(rng.integers(1, 200))},000,000" for _ in range(n_rows)],
            "release_date": [f"{int(rng.integers(1950, 2020))}-0{k % 9 + 1}-1{k % 9}" for k in range(n_rows)],
            "runtime": [f"{int(rng.integers(80, 150))} min" for _ in range(n_rows)],
            "production_countries": [
                json.dumps([{"iso_3166_1": c[:2].upper(), "name": c} for c in row])
                for row in tags_of_rows(rng, ["America", "France", "India"], n_rows, 2)
            ],
            "director": [rng.choice(["A. Lee", "B. Ray", "C. Wu", ""]) for _ in range(n_rows)],
        }
    )
    roles = {
        "id": "id", "title": "text", "overview": "text", "genres": "label", "homepage": "id", "poster_path": "id",
        "budget": "number", "release_date": "date", "runtime": "number", "production_countries": "tags",
        "director": "category",
    }  # fmt: skip
    return Kind(frame, roles, {*WORDS})


def games(n_rows=200, seed=1, separator=";"):
    rng = np.random.default_rng(seed)
    names = ["Indie", "Action", "Casual", "Strategy", "Free to Play"]
    tags = tags_of_rows(rng, names, n_rows)
    frame = pd.DataFrame(
        {
            "appid": rng.permutation(n_rows) * 10,
            "name": [f"Game of {rng.choice(FILLER)} {k}" for k in range(n_rows)],
            "genres": [separator.join(row) for row in tags],
            "platforms": [";".join(row) for row in tags_of_rows(rng, ["windows", "mac", "linux"], n_rows)],
            "owners": [f"{int(rng.integers(1, 90))}0,000+" for _ in range(n_rows)],
            "size": [f"{rng.integers(1, 99)}{rng.choice(['MB', 'GB'])}" for _ in range(n_rows)],
            "positive": [f"{int(rng.integers(0, 100))}%" for _ in range(n_rows)],
            "price": [rng.choice(["4.99", "9.99", "0.0", "19.99"]) for _ in range(n_rows)],
            "support_email": [f"help{k}@games.com" for k in range(n_rows)],
        }
    )
    roles = {
        "appid": "id", "name": "text", "genres": "label", "platforms": "tags", "owners": "number", "size": "number",
        "positive": "number", "price": "number", "support_email": "id",
    }  # fmt: skip
    return Kind(frame, roles, {*names}, {"labels": "genres"})


def restaurants(n_rows=200, seed=2):
    rng = np.random.default_rng(seed)
    names = ["North Indian", "Chinese", "Fast Food", "Cafe", "Desserts", "South Indian"]
    tags = tags_of_rows(rng, names, n_rows)
    frame = pd.DataFrame(
        {
            "url": [f"https://www.food.com/bangalore/{k}?context=a" for k in range(n_rows)],
            "name": [
                f"{rng.choice(['Royal', 'Spice', 'Green'])} {rng.choice(FILLER)} {k}" for k in range(n_rows)
            ],
            "online_order": rng.choice(["Yes", "No"], n_rows),
            "rate": [rng.choice(["NEW", "-", *["4.1/5", "3.7/5", "3.9 /5"] * 10]) for _ in range(n_rows)],
            "phone": [f"080 42{k:06d}\r\n+91 97437{k:05d}" for k in range(n_rows)],
            "location": rng.choice(["Banashankari", "Jayanagar", "New Town"], n_rows),
            "rest_type": [
                ", ".join(row) for row in tags_of_rows(rng, ["Casual Dining", "Bar", "Pub"], n_rows, 2)
            ],
            "approx_cost": [
                f"₹{int(rng.integers(1, 9))},{int(rng.integers(100, 999))}" for _ in range(n_rows)
            ],
            "cuisines": [", ".join(row) for row in tags],
        }
    )
    roles = {
        "url": "id", "name": "text", "online_order": "boolean", "rate": "number", "phone": "id",
        "location": "category", "rest_type": "tags", "approx_cost": "number", "cuisines": "label",
    }  # fmt: skip
    return Kind(frame, roles, {*names}, {"labels": "cuisines"})


def papers(n_rows=240, seed=3):
    rng = np.random.default_rng(seed)
    words = {
        "cs.LG": ("learning", "gradient", "network"), "stat.ML": ("bayesian", "kernel", "regression"),
        "cs.CV": ("image", "pixel", "camera"), "math.OC": ("convex", "optimal", "bound"), "hep-th": ("string", "boson"),
    }  # fmt: skip
    tags = tags_of_rows(rng, [*words], n_rows, 2)
    frame = pd.DataFrame(
        {
            "id": [f"{700 + k // 100:04d}.{k:04d}" for k in range(n_rows)],
            "submitter": [
                f"{rng.choice([*'ABCDEFGH'])}. {rng.choice(['Lee', 'Ray', 'Wu'])}" for _ in range(n_rows)
            ],
            "title": [f"On the {text[:30]}" for text in texts_of(rng, tags, words, 4)],
            "abstract": texts_of(rng, tags, words, 30),
            "categories": [" ".join(row) for row in tags],
            "doi": [f"10.1103/Phys.{k}" if k % 4 else None for k in range(n_rows)],
            "journal-ref": [f"Phys.Rev.D{k % 70}:0{k},2007" if k % 2 else None for k in range(n_rows)],
        }
    )
    roles = {
        "id": "id", "submitter": "category", "title": "text", "abstract": "text", "categories": "label", "doi": "id",
        "journal-ref": "id",
    }  # fmt: skip
    return Kind(frame, roles, {*words}, {"labels": "categories"})


EMOTIONS = ("admiration", "anger", "joy", "neutral", "sadness")
_EMOTION_WORDS = {
    "admiration": ("great", "amazing"), "anger": ("hate", "stupid"), "joy": ("happy", "fun"),
    "neutral": ("maybe", "option"), "sadness": ("sad", "sorry"),
}  # fmt: skip


def emotions(n_rows=240, seed=4):
    """Texts with numeric codes, which a file of names explains."""
    rng = np.random.default_rng(seed)
    tags = tags_of_rows(rng, [*EMOTIONS], n_rows, 2)
    tags = [row if rng.random() < 0.2 else row[:1] for row in tags]
    frame = pd.DataFrame(
        {
            "text": texts_of(rng, tags, _EMOTION_WORDS, 9),
            "labels": [",".join(str(EMOTIONS.index(tag)) for tag in row) for row in tags],
            "comment_id": [f"ed{k * 7919:05x}q" for k in range(n_rows)],
        }
    )
    roles = {"text": "text", "labels": "label", "comment_id": "id"}
    return Kind(frame, roles, {*EMOTIONS}, {"label_names": [*EMOTIONS]})


def one_hot_emotions(n_rows=240, seed=4):
    kind = emotions(n_rows, seed)
    codes = [set(cell.split(",")) for cell in kind.frame["labels"]]
    frame = kind.frame[["text"]].assign(
        author=[f"user{k * 31 % 997}x" for k in range(n_rows)],
        subreddit=np.random.default_rng(seed).choice(["nba", "rpg", "ukpolitics"], n_rows),
        created_utc=np.arange(n_rows) * 7919.5 + 1.5e9,
        **{name: [int(str(place) in row) for row in codes] for place, name in enumerate(EMOTIONS)},
    )
    roles = {"text": "text", "author": "id", "subreddit": "category", "created_utc": "number"}
    roles |= dict.fromkeys(EMOTIONS, "label")
    return Kind(frame, roles, {*EMOTIONS}, {"labels": 5})


def newswire(n_rows=240, seed=5):
    rng = np.random.default_rng(seed)
    words = {
        "earn": ("profit", "dividend"), "acq": ("merger", "stake"), "grain": ("tonnes", "harvest"),
        "wheat": ("wheat", "flour"), "crude": ("barrel", "opec"),
    }  # fmt: skip
    tags = tags_of_rows(rng, [*words], n_rows, 2)
    frame = pd.DataFrame(
        {
            "newid": np.arange(n_rows) + 1,
            "date": [f"26-FEB-1987 15:0{k % 9}:01" for k in range(n_rows)],
            "body": texts_of(rng, tags, words, 25),
            "topics": [str(np.array(row)) for row in tags],
        }
    )
    roles = {"newid": "id", "date": "date", "body": "text", "topics": "label"}
    return Kind(frame, roles, {*words})


def pokemon(n_rows=200, seed=6):
    rng = np.random.default_rng(seed)
    names = ["Water", "Normal", "Grass", "Bug", "Flying"]
    tags = tags_of_rows(rng, names, n_rows, 2)
    frame = pd.DataFrame(
        {
            "#": np.arange(n_rows) // 2 + 1,
            "Name": [f"{rng.choice(FILLER).title()}saur{k}" for k in range(n_rows)],
            "Type 1": [row[0] for row in tags],
            "Type 2": [row[1] if len(row) > 1 else None for row in tags],
            "Attack": rng.integers(5, 190, n_rows),
            "Weight": [f"{rng.integers(1, 90)}.{k % 10} kg" for k in range(n_rows)],
            "Legendary": rng.random(n_rows) < 0.2,
        }
    )
    roles = {
        "#": "number", "Name": "id", "Type 1": "label", "Type 2": "label", "Attack": "number", "Weight": "number",
        "Legendary": "boolean",
    }  # fmt: skip
    return Kind(frame, roles, {*names}, {"merge": "Type 1,Type 2"})


def tickets(n_rows=200, seed=7):
    rng = np.random.default_rng(seed)
    words = {"bug": ("crash", "error"), "docs": ("typo", "readme"), "enhancement": ("feature", "support")}
    tags = tags_of_rows(rng, [*words], n_rows, 2)
    frame = pd.DataFrame(
        {
            "url": [f"https://api.github.com/repos/a/b/issues/{k}" for k in range(n_rows)],
            "number": np.arange(n_rows) + 1,
            "title": [f"{text[:25]} {k}" for k, text in enumerate(texts_of(rng, tags, words, 5))],
            "user": [{"login": rng.choice(["ada", "bob", "cy"]), "id": 1} for _ in range(n_rows)],
            "labels": [[{"id": len(tag), "name": tag, "color": "d73a4a"} for tag in row] for row in tags],
            "state": rng.choice(["open", "closed"], n_rows),
            "comments": rng.integers(0, 30, n_rows),
            "created_at": [f"2020-01-{k % 28 + 1:02d}T12:00:0{k % 9}Z" for k in range(n_rows)],
            "reactions": [{"url": f"https://x.y/{k}", "total_count": 0} for k in range(n_rows)],
            "body": [None if k % 9 == 0 else text for k, text in enumerate(texts_of(rng, tags, words, 30))],
        }
    )
    roles = {
        "url": "id", "number": "id", "title": "text", "user": "category", "labels": "label", "state": "category",
        "comments": "number", "created_at": "date", "reactions": "ignored", "body": "text",
    }  # fmt: skip
    return Kind(frame, roles, {*words})


def shows(n_rows=240, seed=8):
    rng = np.random.default_rng(seed)
    names = ["International Movies", "Dramas", "Comedies", "Documentaries", "Kids' TV"]
    words = dict(zip(names, WORDS.values(), strict=True))
    tags = tags_of_rows(rng, names, n_rows)
    is_film = rng.random(n_rows) < 0.7
    frame = pd.DataFrame(
        {
            "show_id": [f"s{k + 1}" for k in range(n_rows)],
            "type": np.where(is_film, "Movie", "TV Show"),
            "title": [f"{rng.choice(FILLER)} {rng.choice(FILLER)} {k}" for k in range(n_rows)],
            "director": [rng.choice(["Ann Lee", "Bo Ray", "Cy Wu"]) if film else "" for film in is_film],
            "country": [
                ", ".join(row) for row in tags_of_rows(rng, ["United States", "India", "Spain"], n_rows, 2)
            ],
            "date_added": [f"September {k % 28 + 1}, 2021" for k in range(n_rows)],
            "duration": [
                f"{rng.integers(70, 150)} min" if film else rng.choice(["1 Season", "2 Seasons", "3 Seasons"])
                for film in is_film
            ],
            "listed_in": [", ".join(row) for row in tags],
            "description": texts_of(rng, tags, words),
        }
    )
    roles = {
        "show_id": "id", "type": "category", "title": "text", "director": "category", "country": "tags",
        "date_added": "date", "duration": "number", "listed_in": "label", "description": "text",
    }  # fmt: skip
    return Kind(frame, roles, {*names}, {"labels": "listed_in"})


KINDS = {
    "films with lists of objects": films,
    "games with semicolons": games,
    "games with commas": lambda: games(separator=","),
    "restaurants": restaurants,
    "papers": papers,
    "emotions with codes": emotions,
    "one-hot emotions": one_hot_emotions,
    "newswire": newswire,
    "creatures with two types": pokemon,
    "tickets in JSON": tickets,
    "shows": shows,
}

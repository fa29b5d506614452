"""
Which words predict the tags of a message?
==========================================

Messages about six subjects were tagged by careless readers, so some tags are wrong. Which
words matter, and for which tag? The messages are generated, so the answer is known.
"""

# %%
# A message has one or two subjects. Some of its words come from its subjects, and the rest are
# everyday words.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from labelsieve import EvidenceSelector
from labelsieve.datasets import add_candidates

SUBJECTS = {
    "space": "orbit rocket moon launch satellite shuttle telescope planet",
    "hockey": "goal puck team season coach playoff goalie ice",
    "medicine": "doctor patient dose symptom treatment vaccine clinic nerve",
    "motors": "engine brake clutch fuel gear bumper wheel mileage",
    "windows": "driver desktop icon font printer install window mouse",
    "gardens": "seed soil bulb compost prune blossom hedge shade",
}
EVERYDAY = (
    "the of and a to in is you that it he was for on are as with his they at be this have "
    "from or one had by word but not what all were we when your can said there use an "
    "each which she do how their if will"
).split()

rng = np.random.default_rng(0)
tags = list(SUBJECTS)
Y = np.zeros((600, len(tags)), dtype=int)
messages = []
for row in range(len(Y)):
    chosen = rng.choice(len(tags), size=rng.integers(1, 3), replace=False)
    Y[row, chosen] = 1
    subject_words = [word for tag in chosen for word in SUBJECTS[tags[tag]].split()]
    messages.append(" ".join([*rng.choice(subject_words, 6), *rng.choice(EVERYDAY, 14)]))
print(messages[0], "->", [tags[tag] for tag in np.flatnonzero(Y[0])])

# %%
# Readers add each wrong tag with probability 0.25. The words become a sparse matrix and stay
# sparse.

Y_candidates = add_candidates(Y, rate=0.25, random_state=0)
vectorizer = TfidfVectorizer()
X = vectorizer.fit_transform(messages)
selector = EvidenceSelector(n_features_to_select="auto").fit(X, Y_candidates)
words = vectorizer.get_feature_names_out()
kept = words[selector.get_support()]
known = {word for line in SUBJECTS.values() for word in line.split()}
n_found = len(known & set(kept))
print(f"{X.shape[1]} words, {len(kept)} kept, with {n_found} of the {len(known)} that matter")

# %%
# The first 24 words of the ranking, and the tags that each word supports or opposes.

order = np.argsort(selector.ranking_)[:24]
share = np.array(
    [
        [
            Y_candidates[X[:, [word]].toarray().ravel() > 0, tag].mean()
            for tag in range(len(tags))
        ]
        for word in order
    ]
)
figure, axes = plt.subplots(figsize=(7, 6))
image = axes.imshow(
    share - Y_candidates.mean(axis=0), cmap="PiYG", vmin=-0.6, vmax=0.6, aspect="auto"
)
axes.set_xticks(range(len(tags)), tags)
axes.set_yticks(range(len(order)), words[order])
figure.colorbar(image, label="share of messages with the tag, minus average")
figure.tight_layout()

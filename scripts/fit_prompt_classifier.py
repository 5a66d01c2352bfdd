"""Fit the weights of `memdir.retrieval.agents.prompt_classifier` on the tuned half of the projects of
`memdir bench agents --part prompts`.

Prompts that need a memory of their project, against those that need none and, at a quarter of their weight, those that need one
of another project. Prints the weights, and what a fit without each project in turn makes of it.
Usage: .venv/bin/python scripts/fit_prompt_classifier.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from memdir.retrieval.agents.prompt_classifier import NEEDED_MIN, PromptClassifier, excerpts
from memdir.retrieval.embed.minilm import MiniLmEmbedder
from memdir_bench.agents.projects import Project, Prompt, projects

RIDGE = 3e-3
STEPS = 50
ELSEWHERE = 0.25
"""Weight of a prompt about another project, of which there are many."""


class Rows:
    """Every prompt asked in every project: in whose, features of shape (asked, 2), weights, and whether one is needed."""

    def __init__(self, known: list[Project], model: MiniLmEmbedder, classifier: PromptClassifier) -> None:
        self.names = [project.name for project in known]
        asked_in, asked_of, features, weights, wanted = [], [], [], [], []
        for own, project in enumerate(known):
            memories = model.embed_passages([f"{', '.join(tags)}\n{text}" for tags, text in project.memories.values()])
            for other, whose in enumerate(known):
                for prompt in whose.prompts:
                    if other != own and prompt.needs is None:
                        continue
                    asked_in.append(own)
                    asked_of.append(other)
                    features.append(_features(prompt, memories, model, classifier))
                    weights.append(1.0 if own == other else ELSEWHERE)
                    wanted.append(own == other and prompt.needs is not None)
        self.asked_in, self.asked_of = np.array(asked_in), np.array(asked_of)
        self.features, self.weights, self.wanted = np.array(features), np.array(weights), np.array(wanted, dtype=float)


def _features(prompt: Prompt, memories: np.ndarray, model: MiniLmEmbedder, classifier: PromptClassifier) -> tuple[float, ...]:
    """Of its surest part by the first feature."""
    found = []
    for part in excerpts(prompt.text):
        vector = model.embed_query(part)
        found.append(classifier.features(vector, float((memories @ vector).max())))
    return max(found)


def fitted(rows: Rows, chosen: np.ndarray) -> np.ndarray:
    """Weights, then the bias: logistic regression by Newton's method, with a ridge on standardised features."""
    features, wanted, counts = rows.features[chosen], rows.wanted[chosen], rows.weights[chosen]
    mean, spread = features.mean(0), features.std(0)
    table = np.c_[(features - mean) / spread, np.ones(len(features))]
    weights = np.zeros(table.shape[1])
    for _ in range(STEPS):
        sure = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (counts * (sure - wanted)) / counts.sum() + RIDGE * np.r_[weights[:-1], 0]
        curve = (table * (counts * sure * (1 - sure))[:, None]).T @ table / counts.sum() + RIDGE * np.eye(len(weights))
        weights -= np.linalg.solve(curve, slope)
    return np.r_[weights[:-1] / spread, weights[-1] - (weights[:-1] * mean / spread).sum()]


def main() -> None:
    """See the module."""
    with tempfile.TemporaryDirectory() as folder:
        model = MiniLmEmbedder(Path(folder))
        classifier = PromptClassifier(model)
        rows = Rows([project for project in projects() if not project.held], model, classifier)
    own = rows.asked_in == rows.asked_of
    for number, name in enumerate(rows.names):
        weights = fitted(rows, (rows.asked_in != number) & (rows.asked_of != number))
        given = 1 / (1 + np.exp(-(rows.features @ weights[:-1] + weights[-1]))) >= NEEDED_MIN
        here = rows.asked_in == number
        passed, silent = given[here & (rows.wanted == 1)].mean(), 1 - given[here & own & (rows.wanted == 0)].mean()
        elsewhere = 1 - given[here & ~own].mean()
        told = f"{passed:.2f} of those that need one pass; silent for {silent:.2f} that need none"
        sys.stdout.write(f"without {name}: {told}, for {elsewhere:.2f} of other projects\n")
    weights = fitted(rows, np.ones(len(own), dtype=bool))
    listed = ", ".join(f"{weight:.2f}" for weight in weights[:-1])
    sys.stdout.write(f"weights {listed} bias {weights[-1]:.2f}\n")


if __name__ == "__main__":
    main()

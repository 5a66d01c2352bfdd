"""Fit the weights of `memdir.retrieval.agents.need` on the tuned half of the projects of `memdir bench agents --part prompts`.

Prints them, and what a fit without each project in turn makes of that project.
Usage: .venv/bin/python scripts/fit_prompt_need.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from memdir.retrieval.agents.need import NEEDED_MIN, PromptNeed, parts_of
from memdir.retrieval.embed.minilm import MiniLmEmbedder
from memdir_bench.agents.projects import Project, projects

RIDGE = 3e-3
STEPS = 50


def rows(project: Project, model: MiniLmEmbedder, need: PromptNeed) -> tuple[np.ndarray, np.ndarray]:
    """Features of each prompt, shape (prompts, 4), of its surest part by the first feature; and whether it needs a memory."""
    known = model.embed_passages([f"{', '.join(tags)}\n{text}" for tags, text in project.memories.values()])
    found, wanted = [], []
    for prompt in project.prompts:
        some = []
        for part in parts_of(prompt.text):
            vector = model.embed_query(part)
            best, second = sorted((known @ vector).tolist(), reverse=True)[:2]
            some.append(need.features(vector, best, second))
        found.append(max(some))
        wanted.append(prompt.needs is not None)
    return np.array(found), np.array(wanted, dtype=float)


def fitted(features: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Weights, then the bias: logistic regression by Newton's method, with a ridge on standardised features."""
    mean, spread = features.mean(0), features.std(0)
    table = np.c_[(features - mean) / spread, np.ones(len(features))]
    weights = np.zeros(table.shape[1])
    for _ in range(STEPS):
        sure = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (sure - wanted) / len(wanted) + RIDGE * np.r_[weights[:-1], 0]
        curve = (table * (sure * (1 - sure))[:, None]).T @ table / len(wanted) + RIDGE * np.eye(len(weights))
        weights -= np.linalg.solve(curve, slope)
    return np.r_[weights[:-1] / spread, weights[-1] - (weights[:-1] * mean / spread).sum()]


def main() -> None:
    """See the module."""
    with tempfile.TemporaryDirectory() as folder:
        model = MiniLmEmbedder(Path(folder))
        need = PromptNeed(model)
        need.load()
        known = {project.name: rows(project, model, need) for project in projects() if not project.held}
    for left_out, (features, wanted) in known.items():
        others = [own for name, own in known.items() if name != left_out]
        weights = fitted(np.concatenate([own[0] for own in others]), np.concatenate([own[1] for own in others]))
        sure = 1 / (1 + np.exp(-(features @ weights[:-1] + weights[-1])))
        passed, silent = (sure[wanted == 1] >= NEEDED_MIN).mean(), (sure[wanted == 0] < NEEDED_MIN).mean()
        told = f"without {left_out}: {passed:.2f} of those that need one pass, {silent:.2f} of the others do not"
        sys.stdout.write(f"{told}\n")
    weights = fitted(*(np.concatenate([own[at] for own in known.values()]) for at in (0, 1)))
    listed = ", ".join(f"{weight:.2f}" for weight in weights[:-1])
    sys.stdout.write(f"weights {listed} bias {weights[-1]:.2f}\n")


if __name__ == "__main__":
    main()

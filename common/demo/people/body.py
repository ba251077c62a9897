"""The body model as the demo uses it: meshes without translation, and their root joint."""
import torch

from common.human_model import HumanModel


def root_row(human_model: HumanModel) -> torch.Tensor:
    """The (V,) row of a body model's joint regressor that gives its root joint."""
    return human_model.get_buffer('joint_regressor')[human_model.root_joint_idx]


def body_meshes(human_model: HumanModel, pose: torch.Tensor,
                betas: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Pose (N, K * 3) and betas (N, 10) -> vertices (N, V, 3) and root joints (N, 3), metres."""
    vertices, _ = human_model(pose, betas)
    return vertices, root_row(human_model) @ vertices

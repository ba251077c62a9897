"""Notices a training that has nothing to learn from: losses that are exactly zero, step after step."""
import logging

from common.errors import UserError

log = logging.getLogger(__name__)
WATCHED = 100  # steps
FIT = 'no sample read so far has a fit that can be used'
JOINTS = 'no sample read so far has annotated joints that this loss compares'
BOTH = 'no sample read so far has a fit or joints that can be used'
REASONS = {
    'joint_fit': FIT, 'joint_orig': JOINTS, 'joint_heatmap': BOTH,
    'mesh_fit': FIT, 'mesh_joint_fit': FIT, 'mesh_joint_orig': JOINTS,
    'mesh_normal': f'{FIT}, or normal_loss_weight is 0', 'mesh_edge': f'{FIT}, or edge_loss_weight is 0',
    'pose_param': FIT, 'shape_param': FIT, 'joint_fit_cam': FIT,
    'joint_orig_cam': 'no sample read so far has 3-D joints',
}


class ZeroLosses:
    """Watches the first steps of a run, over all of its epochs."""

    def __init__(self) -> None:
        self.steps = 0
        self.moved: dict[str, bool] = {}

    @property
    def all_zero(self) -> bool:
        """Whether no loss has been other than 0 so far."""
        return not any(self.moved.values())

    def add(self, losses: dict[str, float], ends_epoch: bool) -> None:
        """Look at the losses {name: value} of a step; after WATCHED of them a warning names those always zero.

        Raises:
            UserError: All losses were zero in the first WATCHED steps, or in all of the run's first epoch.
        """
        if self.steps >= WATCHED:
            return
        self.steps += 1
        for name, value in losses.items():
            self.moved[name] = self.moved.get(name, False) or value != 0
        is_first_epoch = ends_epoch and self.all_zero
        if self.steps < WATCHED and not is_first_epoch:
            return
        still = [name for name, moved in self.moved.items() if not moved]
        if len(still) == len(self.moved):
            raise UserError(f'there is nothing to learn: all losses were 0 in the first {self.steps} steps: '
                            f'{self.why(still)}; see to the annotations and fits of the training sets')
        if still:
            log.warning('always 0 in the first %d steps: %s', self.steps, self.why(still))

    @staticmethod
    def why(names: list[str]) -> str:
        """The names of losses with what each lacks."""
        return '; '.join(f'loss_{name} ({REASONS.get(name, BOTH)})' for name in names)

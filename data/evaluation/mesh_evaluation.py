"""The half of MeshDataset that tests: predictions in, errors in millimetres and a report out."""
import functools
from pathlib import Path

import numpy as np

from common.errors import UserError
from data.evaluation import mesh_errors, report


class MeshEvaluation:
    """Mixin of MeshDataset. A loader may override `compare` and `print_eval_result`, to write files for instance."""

    @property
    def has_truth(self):
        """Whether test items have something to compare with: a mesh, or 3-D joints."""
        return self.mesh_target_at_test or (self.joint_set is not None and self.has_3d)

    @functools.cached_property
    def eval_joints(self):
        """The joints that are compared: EvalJoints."""
        return mesh_errors.default_eval_joints(
            self.human_model, self.regressor, None if self.mesh_target_at_test else self.joint_set)

    def evaluate(self, outs, start):
        """Errors of a batch of predictions for the samples start, start + 1, ...: {metric: (B, ...)}, millimetres.

        outs, arrays: mesh_coord_img (B, V, 3), img space, and bb2img_trans (B, 2, 3); in the param stage
        mesh_coord_cam (B, V, 3), root-relative metres; mesh_coord_cam_target (B, V, 3) metres, where test items carry
        a target mesh. Metrics end in _lixel or _param. Empty where there is nothing to compare with.
        UserError: a prediction is not finite.
        """
        samples = self.eval_samples(start, len(outs['mesh_coord_img']))
        self.check_finite(outs, samples)
        target_mesh, target_joints = self.test_targets(samples, outs)
        depths = [s.root_depth if s.root_depth is not None else joints[self.eval_joints.root, 2]
                  for s, joints in zip(samples, samples if target_joints is None else target_joints, strict=True)]
        meshes = {'lixel': mesh_errors.lixel_meshes(
            outs['mesh_coord_img'], outs['bb2img_trans'], depths, [s.camera for s in samples], self.codec)}
        if 'mesh_coord_cam' in outs:
            meshes['param'] = outs['mesh_coord_cam']
        if self.cfg.vis:
            for i, sample in enumerate(samples):
                path = Path(self.cfg.output_dir) / 'vis' / f'{self.name}_{sample.ann_id}_lixel.jpg'
                report.save_overlay(path, self.load_image(sample), meshes['lixel'][i], self.human_model.face,
                                        sample.camera)
        return self.compare(meshes, target_mesh, target_joints, start)

    def check_finite(self, outs, samples):
        """UserError for a prediction that is not finite: left out, it would make the means look better."""
        for name in ('mesh_coord_img', 'mesh_coord_cam'):
            finite = np.isfinite(outs[name]).all((1, 2)) if name in outs else True
            if not np.all(finite):
                raise UserError(f'{self.name}: the network predicts numbers that are not finite, first for '
                                f'{samples[int(np.argmin(finite))].img_path}: amp=fp16 may overflow (use amp=bf16 or '
                                'amp=none), or the snapshot is of a training that failed')

    def eval_samples(self, start, count):
        """The Samples of a test batch."""
        return [self.samples[start + i] for i in range(count)]

    def test_targets(self, samples, outs):
        """What predictions are compared with: meshes (B, V, 3) or None, and joints (B, J, 3) of eval_joints or None."""
        if self.mesh_target_at_test:
            mesh, joints = outs['mesh_coord_cam_target'], self.eval_joints
            if self.human_model.name not in self.fit_models:  # another mesh: joints only
                body = self.body()
                joints = mesh_errors.default_eval_joints(body, functools.partial(self.regressor, body=body))
                return None, joints.regress(mesh)
            return mesh, joints.regress(mesh)
        if not self.has_truth:
            return None, None
        return None, mesh_errors.annotated_joints(samples, self.joint_set, self.eval_joints)

    def compare(self, meshes, target_mesh, target_joints, start):
        """The metrics of evaluate. meshes: {'lixel' | 'param': (B, V, 3) metres, camera space or root-relative}."""
        if target_joints is None:
            return {}
        return {f'{metric}_{name}': value for name, mesh in meshes.items() for metric, value in mesh_errors.mesh_errors(
            mesh, self.eval_joints.regress(mesh), target_joints, target_mesh, self.eval_joints).items()}

    def print_eval_result(self, results):
        """Print and save (output/result/<name>.json) what all batches gave, joined: {metric: (N, ...)}.

        Returns the summary: protocol, numbers of samples, joint set, root, source of the root depths, `metrics` (means
        over the samples) and `per_joint_mm`.
        """
        description = {'testset': self.name, 'protocol': self.protocol, 'samples': len(self),
                       'excluded': self.excluded, 'root_depth': self.boxes.depth_source}
        names = []
        if self.check.skipped():
            description['skipped'] = self.check.skipped()
        if results:
            unknown = max(int(np.isnan(v).any(tuple(range(1, np.ndim(v)))).sum()) for v in results.values())
            if unknown:
                description['without_truth'] = unknown
            joint_set, names = self.eval_joints.joint_set, self.eval_joints.names()
            description |= {'joint_set': f'{len(names)} joints of {joint_set.name}', 'root': joint_set.root}
        summary = report.summarise(results, description, names)
        print(report.as_text(summary))
        report.save_result(self.cfg.output_dir, self.name, summary)
        return summary

"""Write tiny copies of the five data sets (all files a loader reads), for parity tests.

    python tests/golden/make_datasets.py BODY_DIR OUT_DIR [SEED]

OUT_DIR then holds Human36M/ MuCo/ MSCOCO/ PW3D/ FreiHAND/ as the loaders expect them under data/, with the odd cases
inside: a missing fit, a bad fit, a crowd, a person without keypoints, an empty box, two people, betas beyond 3.
BODY_DIR is what make_bodies.py wrote. The same seed gives the same files; the order of the random draws is fixed.
"""
import os
import shutil
import sys

import numpy as np

if not __package__:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from data.joint_set import HUMAN36M, MUCO  # noqa: E402
from tests.golden.stand_in import (  # noqa: E402
    Body,
    as_param,
    box,
    dump,
    grown,
    noise_image,
    pose_shape,
    project,
    to_vec,
    upright,
)


def human36m(rng, out, smpl, h36m_reg):
    """World millimetres, one camera file per subject; the second frame's joints are far from the SMPL fit."""
    W, H = 200, 204
    aid, iid, rootnet = 0, 0, []
    for subject in (1, 5, 6, 7, 8, 9, 11):
        images, anns, joints, params = [], [], {}, {}
        cams = {}
        for cam in ('1', '4'):
            R = upright(rng)
            cams[cam] = dict(
                R=R.tolist(), t=[float(rng.normal() * 100), float(rng.normal() * 100), float(rng.uniform(3500, 5000))],
                f=[229. + rng.random(), 229. + rng.random()], c=[100 + rng.random() * 4, 102 + rng.random() * 4])
        for k, frame in enumerate((0, 5, 64, 7)):
            pose, shape = pose_shape(rng)
            trans = rng.normal(size=3) * .3
            mesh, _ = smpl(pose, shape, trans)
            noise = (8, 60, 8, 8)[k]
            joints.setdefault('2', {}).setdefault('1', {})[str(frame)] = (
                (h36m_reg @ mesh) * 1000 + rng.normal(size=(17, 3)) * noise).tolist()
            if k != 2 or subject in (9, 11):
                params.setdefault('2', {}).setdefault('1', {})[str(frame)] = as_param(pose, shape, trans)
            for cam in ('1', '4'):
                c = cams[cam]
                X = (mesh * 1000) @ np.array(c['R']).T + np.array(c['t'])
                name = f's_{subject:02d}_act_02_subact_01_ca_{int(cam):02d}_{frame + 1:06d}.png'
                noise_image(rng, H, W, out, 'Human36M/images', name)
                images.append(dict(id=iid, file_name=name, width=W, height=H, subject=subject,
                                   action_name='Directions', action_idx=2, subaction_idx=1, cam_idx=int(cam),
                                   frame_idx=frame))
                b = box(project(X, c['f'], c['c']), W, H)
                anns.append(dict(id=aid, image_id=iid, bbox=b, keypoints_vis=[True] * 17))
                depth = float(X[:, 2].mean() + rng.normal() * 40)
                rootnet.append(dict(image_id=iid, bbox=grown(b, 8, 12), root_cam=[10., 20., depth]))
                iid += 1
                aid += 1
        p = f'{out}/Human36M/annotations/Human36M_subject{subject}_'
        for kind, content in (('data', dict(images=images, annotations=anns)), ('camera', cams), ('joint_3d', joints),
                              ('smpl_param', params)):
            dump(content, f'{p}{kind}.json')
    dump(rootnet, f'{out}/Human36M/rootnet_output/bbox_root_human36m_output.json')


def muco(rng, out, smpl, h36m_reg):
    """Camera millimetres, 21 joints, two people per picture; one fit is bad, one picture has none."""
    images, anns, params, aid = [], [], {}, 0
    for iid in range(4):
        f, c = [225.0, 226.5], [99.0, 101.5]
        name = f'{"un" if iid % 2 else ""}augmented_set/{iid:03d}.png'
        noise_image(rng, 210, 190, out, 'MuCo/data', name)
        images.append(dict(id=iid, file_name=name, width=190, height=210, f=f, c=c))
        for _ in range(2):
            pose, shape = pose_shape(rng)
            pose[:3] = to_vec(upright(rng))
            trans = np.array([rng.normal() * .2, rng.normal() * .2, rng.uniform(3, 5)])
            mesh, skeleton = smpl(pose, shape, trans)
            h = h36m_reg @ mesh
            cam = 1000 * np.stack([h[HUMAN36M.index(n)] if n in HUMAN36M.joints_name else skeleton[i]
                                   for i, n in enumerate(MUCO.joints_name)])
            cam += rng.normal(size=cam.shape) * (5 if iid != 1 else 60)
            anns.append(dict(id=aid, image_id=iid, bbox=box(project(mesh, f, c), 190, 210), keypoints_cam=cam.tolist(),
                             keypoints_img=project(cam, f, c).tolist()))
            if iid != 3:
                params[str(aid)] = as_param(pose, shape, trans)
            aid += 1
    dump(dict(images=images, annotations=anns), f'{out}/MuCo/data/MuCo-3DHP.json')
    dump(params, f'{out}/MuCo/data/smpl_param.json')


def mscoco(rng, out, smpl, coco_reg):
    """17 keypoints with visibility; a crowd, a person without keypoints, an empty box, people without a fit."""
    fits, aid, rootnet = {}, 100, []
    for split in ('train', 'val'):
        images, anns = [], []
        for k in range(5):
            iid = (0 if split == 'train' else 50) + k
            W, H = 220, 180
            name = f'{iid:012d}.png'
            noise_image(rng, H, W, out, f'MSCOCO/images/{split}2017', name)
            images.append(dict(id=iid, file_name=name, width=W, height=H))
            pose, shape = pose_shape(rng)
            pose[:3] = to_vec(upright(rng))
            trans = np.array([rng.normal() * .1, rng.normal() * .1, rng.uniform(15, 22)])
            f, c = [1500., 1500.], [W / 2, H / 2]
            mesh, _ = smpl(pose, shape, trans)
            kp = project(coco_reg @ mesh, f, c) + rng.normal(size=(17, 2)) * (1 if k != 1 else 25)
            vis = (rng.random(17) > .3).astype(int) * 2
            vis[11:13] = 2
            b = box(project(mesh, f, c), W, H)
            keypoints = np.concatenate([np.round(kp) * (vis > 0)[:, None], vis[:, None]], 1).ravel().tolist()
            a = dict(id=aid, image_id=iid, category_id=1, iscrowd=0, num_keypoints=int((vis > 0).sum()), bbox=b,
                     keypoints=keypoints, area=b[2] * b[3])
            if k != 2:
                fits[str(aid)] = dict(smpl_param=as_param(pose, shape, trans), cam_param=dict(focal=f, princpt=c))
            rootnet.append(dict(image_id=iid, bbox=grown(b, 5, 5), root_cam=[0., 0., float(trans[2] * 1000)]))
            aid += 1
            anns += [a, dict(a, id=aid, iscrowd=1), dict(a, id=aid + 1, num_keypoints=0),
                     dict(a, id=aid + 2, bbox=[10, 10, 0, 5])]
            aid += 3
        dump(dict(images=images, annotations=anns, categories=[dict(id=1, name='person')]),
             f'{out}/MSCOCO/annotations/person_keypoints_{split}2017.json')
    dump(fits, f'{out}/MSCOCO/annotations/coco_smplifyx_train.json')
    dump(rootnet, f'{out}/MSCOCO/rootnet_output/bbox_root_coco_output.json')


def pw3d(rng, out, gendered):
    """Camera metres, male and female bodies, two people in one picture."""
    rootnet, aid = [], 0
    for split in ('train', 'validation', 'test'):
        images, anns = [], []
        for iid in range(4):
            W, H = 180, 240
            f, c = [300. + rng.random(), 300. + rng.random()], [90. + rng.random(), 120. + rng.random()]
            name, seq = f'image_{iid:05d}.png', f'walk_{split}_00'
            noise_image(rng, H, W, out, 'PW3D/data/imageFiles', seq, name)
            images.append(dict(id=iid, file_name=name, sequence=seq, frame_idx=iid, width=W, height=H,
                               cam_param=dict(focal=f, princpt=c)))
            for person in range(2 if iid == 1 else 1):
                gender = ('male', 'female')[(iid + person) % 2]
                pose, shape = pose_shape(rng)
                pose[:3] = to_vec(upright(rng))
                trans = np.array([rng.normal() * .2, rng.normal() * .2, rng.uniform(3, 5)])
                mesh, _ = gendered[gender](pose, shape, trans)
                b = box(project(mesh, f, c), W, H)
                anns.append(dict(id=aid, image_id=iid, person_id=person, bbox=b,
                                 smpl_param=as_param(pose, shape, trans, gender=gender)))
                depth = float(trans[2] + rng.normal() * .05)
                rootnet.append(dict(ann_id=aid, image_id=iid, bbox=grown(b, 6, 9), root_cam=[0., 0., depth]))
                aid += 1
        dump(dict(images=images, annotations=anns), f'{out}/PW3D/data/3DPW_{split}.json')
    dump(rootnet, f'{out}/PW3D/rootnet_output/bbox_root_pw3d_output.json')


def freihand(rng, out, mano):
    """Camera metres, right hands; the test pictures have no hand parameters."""
    rootnet = []
    for split in ('train', 'eval'):
        images, anns, data = [], [], {}
        for k in range(4):
            W = H = 112
            f, c = [240. + rng.random(), 240. + rng.random()], [56., 56.]
            name = f'{"training" if split == "train" else "evaluation"}/rgb/{k:08d}.png'
            noise_image(rng, H, W, out, 'FreiHAND/data', name)
            images.append(dict(id=k, file_name=name, width=W, height=H, db_idx=k))
            pose, shape = rng.normal(size=48) * .3, rng.normal(size=10)
            pose[:3] = to_vec(upright(rng))
            trans = np.array([rng.normal() * .02, rng.normal() * .02, rng.uniform(.5, .8)])
            mesh, joints = mano(pose, shape, trans, mean=mano.d['hands_mean'])
            b = box(project(mesh, f, c), W, H)
            # like the published files: no R and t, and no boxes in the evaluation list (RootNet has them)
            anns.append(dict(id=k, image_id=k))
            cam = dict(focal=f, princpt=c)
            if split == 'train':
                anns[-1]['bbox'] = b
                joints21 = np.concatenate([joints, mesh[[745, 317, 444, 556, 673]]])
                data[str(k)] = dict(cam_param=cam, mano_param=as_param(pose, shape, trans), joint_3d=joints21.tolist())
            else:
                data[str(k)] = dict(cam_param=cam, scale=.03)
                rootnet.append(dict(image_id=k, bbox=grown(b, 4, 4), root_cam=[0., 0., float(trans[2])]))
        dump(dict(images=images, annotations=anns), f'{out}/FreiHAND/data/freihand_{split}_coco.json')
        dump(data, f'{out}/FreiHAND/data/freihand_{split}_data.json')
    dump(rootnet, f'{out}/FreiHAND/rootnet_output/bbox_root_freihand_output.json')


def main(bodies, out, seed=0):
    rng = np.random.default_rng(seed)
    smpl, male, female = (Body(f'{bodies}/basicModel_{kind}_lbs_10_207_0_v1.0.0.pkl') for kind in ('neutral', 'm', 'f'))
    regressors = []
    for folder, name in (('Human36M', 'J_regressor_h36m_correct.npy'), ('MSCOCO', 'J_regressor_coco_hip_smpl.npy')):
        os.makedirs(f'{out}/{folder}', exist_ok=True)
        shutil.copy(f'{bodies}/{name}', f'{out}/{folder}/{name}')
        regressors.append(np.load(f'{bodies}/{name}'))
    human36m(rng, out, smpl, regressors[0])
    muco(rng, out, smpl, regressors[0])
    mscoco(rng, out, smpl, regressors[1])
    pw3d(rng, out, dict(male=male, female=female))
    freihand(rng, out, Body(f'{bodies}/MANO_RIGHT.pkl'))


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)

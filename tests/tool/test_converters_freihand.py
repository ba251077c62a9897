"""The FreiHAND converter: its MANO parameters give the released surfaces back."""
import cv2
import numpy as np
import pytest

from common.errors import UserError
from common.human_model import get_human_model
from data.placed_fit import place_fit
from tests.raw_releases import (
    load_converted,
    load_json,
    pixel_box,
    run_fit,
    run_model,
    write_body_models,
    write_hidden_twins,
    write_list,
)
from tool.FreiHAND import convert as freihand

K_HAND = np.array([[480., 0, 112], [0, 470., 110], [0, 0, 1]])
BOX = dict(focal=[480, 470], princpt=[112, 110], width=224, height=224)


@pytest.fixture(scope='module')
def model_dir(tmp_path_factory):
    return write_body_models(tmp_path_factory.mktemp('models'))


def write_freihand(raw, hand, count, complete_poses, rng):
    """The official lists for `count` hands; returns their surfaces (count, 778, 3)."""
    mano, joints, surfaces = [], [], []
    for _ in range(count):
        pose, shape = rng.normal(size=48) * .3, rng.normal(size=10)
        trans = np.array([.02, .01, .6]) + rng.normal(size=3) * .02
        vertices, skeleton = run_model(hand, pose, shape, trans)
        if complete_poses:
            pose = freihand.convert_mean_pose(pose[None], hand.pose_mean[3:].numpy(), add=True)[0]
        root = K_HAND @ skeleton[4] / skeleton[4, 2]
        mano.append([np.concatenate([pose, shape, root[:2], skeleton[4, 2:]])])  # a (1, 61) matrix each, as released
        surfaces.append(vertices)
        joints.append(hand.joint_regressor.numpy() @ vertices)
    for split in ('training', 'evaluation'):
        for name, values in (('K', [K_HAND] * count), ('xyz', joints), ('verts', surfaces), ('scale', [.03] * count)):
            write_list(raw / f'{split}_{name}.json', values)
    write_list(raw / 'training_mano.json', mano)
    return np.array(surfaces), np.array(joints)


@pytest.mark.parametrize('complete_poses', [False, True])
def test_freihand_round_trip(tmp_path, model_dir, complete_poses):
    hand = get_human_model('mano', model_dir).double()
    surfaces, joints = write_freihand(tmp_path, hand, 3, complete_poses, np.random.default_rng(2))
    freihand.main([str(tmp_path), '--out', str(tmp_path / 'FreiHAND/data'), '--human_model_dir', str(model_dir)])
    coco, data = (load_json(tmp_path / f'FreiHAND/data/freihand_train_{kind}.json') for kind in ('coco', 'data'))
    assert list(data) == ['0', '1', '2']
    for i, hand_data in enumerate(data.values()):
        vertices, _ = run_fit(hand, hand_data['mano_param'])
        assert np.abs(vertices - surfaces[i]).max() < 1e-4
        assert np.allclose(hand_data['joint_3d'], joints[i], atol=1e-6)
        camera = hand_data['cam_param']
        assert camera == dict(focal=[480., 470.], princpt=[112., 110.])
    assert [image['db_idx'] for image in coco['images']] == [0, 1, 2] * 4  # four images of each hand
    assert coco['images'][7]['file_name'] == 'training/rgb/00000007.jpg'
    assert np.allclose(coco['annotations'][7]['bbox'], pixel_box(surfaces[1], **BOX), atol=.01)
    dataset = load_converted('FreiHAND', 'train', tmp_path, model_dir)
    assert len(dataset) == 12
    assert dataset.get_item(4, None)[2]['is_valid_fit'] == 1
    assert np.abs(place_fit(dataset.samples[4], dataset.body).vertices - surfaces[1]).max() < 1e-4


def test_freihand_without_surfaces(tmp_path, model_dir):
    hand = get_human_model('mano', model_dir)
    surfaces, _ = write_freihand(tmp_path, hand, 2, True, np.random.default_rng(8))
    (tmp_path / 'training_verts.json').unlink()
    freihand.main([str(tmp_path), '--split', 'train', '--out', str(tmp_path), '--human_model_dir', str(model_dir)])
    for expected, hand_data in zip(surfaces, load_json(tmp_path / 'freihand_train_data.json').values(), strict=True):
        vertices, _ = run_fit(hand, hand_data['mano_param'])
        # the joints are computed in another way than they were released: J_regressor @ surface
        assert np.linalg.norm(vertices - expected, axis=1).mean() < .003


def test_freihand_evaluation_boxes(tmp_path, model_dir):
    hand = get_human_model('mano', model_dir)
    surfaces, _ = write_freihand(tmp_path, hand, 2, False, np.random.default_rng(3))
    arguments = [str(tmp_path), '--split', 'eval', '--out', str(tmp_path / 'out')]
    freihand.main(arguments)
    coco = load_json(tmp_path / 'out/freihand_eval_coco.json')
    assert [image['db_idx'] for image in coco['images']] == [0, 1]
    assert np.allclose(coco['annotations'][1]['bbox'], pixel_box(surfaces[1], **BOX), atol=.01)
    assert load_json(tmp_path / 'out/freihand_eval_data.json')['1']['scale'] == .03
    for name in ('xyz', 'verts'):
        (tmp_path / f'evaluation_{name}.json').unlink()
    freihand.main(arguments)
    assert load_json(tmp_path / 'out/freihand_eval_coco.json')['annotations'][1]['bbox'] == [0, 0, 224, 224]


def test_freihand_takes_the_size_of_the_images_that_are_there(tmp_path, model_dir):
    write_freihand(tmp_path, get_human_model('mano', model_dir), 1, False, np.random.default_rng(3))
    (tmp_path / 'evaluation/rgb').mkdir(parents=True)
    cv2.imwrite(str(tmp_path / 'evaluation/rgb/00000000.jpg'), np.zeros((250, 200, 3), np.uint8))
    write_hidden_twins(tmp_path)
    freihand.main([str(tmp_path), '--split', 'eval', '--out', str(tmp_path / 'out')])
    image = load_json(tmp_path / 'out/freihand_eval_coco.json')['images'][0]
    assert (image['width'], image['height']) == (200, 250)


def test_freihand_mean_pose_conventions(model_dir):
    hand = get_human_model('mano', model_dir).double()
    pose = np.random.default_rng(4).normal(size=(1, 48)) * .3
    complete = freihand.convert_mean_pose(pose, hand.pose_mean[3:].numpy(), add=True)
    relative_vertices, _ = run_model(hand, pose[0], np.zeros(10), np.zeros(3))
    hand.pose_mean.zero_()  # flat_hand_mean=True
    complete_vertices, _ = run_model(hand, complete[0], np.zeros(10), np.zeros(3))
    assert np.abs(relative_vertices - complete_vertices).max() < 1e-6
    back = freihand.convert_mean_pose(complete, complete[0, 3:] - pose[0, 3:], add=False)
    assert np.abs(back - pose).max() < 1e-6


@pytest.mark.parametrize('damage, message', [
    (lambda raw: (raw / 'training_mano.json').unlink(), 'training_mano.json is missing'),
    (lambda raw: write_list(raw / 'training_xyz.json', np.zeros((2, 21, 3))), 'training_xyz.json ends after 2 hands'),
    (lambda raw: write_list(raw / 'training_mano.json', np.zeros((3, 58))), 'hand 0 does not have the shape'),
    (lambda raw: write_list(raw / 'training_verts.json', np.random.default_rng(0).normal(size=(3, 778, 3))),
     'from the released hands'),
    (lambda raw: (raw / 'training_verts.json').write_text('[[[1, 2'), 'cut off')])
def test_freihand_names_what_is_wrong(tmp_path, model_dir, damage, message):
    write_freihand(tmp_path, get_human_model('mano', model_dir), 3, False, np.random.default_rng(5))
    damage(tmp_path)
    with pytest.raises(UserError, match=message):
        freihand.main([str(tmp_path), '--out', str(tmp_path / 'out'), '--human_model_dir', str(model_dir)])

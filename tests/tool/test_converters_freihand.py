"""The FreiHAND converter: its MANO parameters give the released surfaces back."""
import json

import cv2
import numpy as np
import pytest

from common.errors import UserError
from common.human_model import get_human_model
from data.placed_fit import place_fit
from tests import raw_releases as release
from tool.FreiHAND import convert as freihand

K_HAND = np.array([[480., 0, 112], [0, 470., 110], [0, 0, 1]])
BOX = dict(focal=[480, 470], princpt=[112, 110], width=224, height=224)


def write_freihand(raw, hand, count, complete_poses, rng):
    """The official lists for `count` hands; returns their surfaces (count, 778, 3)."""
    mano, joints, surfaces = [], [], []
    for _ in range(count):
        pose, shape = rng.normal(size=48) * .3, rng.normal(size=10)
        trans = np.array([.02, .01, .6]) + rng.normal(size=3) * .02
        vertices, skeleton = release.run_model(hand, pose, shape, trans)
        if complete_poses:
            pose = freihand.convert_mean_pose(pose[None], hand.pose_mean[3:].numpy(), add=True)[0]
        root = K_HAND @ skeleton[4] / skeleton[4, 2]
        mano.append([np.concatenate([pose, shape, root[:2], skeleton[4, 2:]])])  # a (1, 61) matrix each, as released
        surfaces.append(vertices)
        joints.append(hand.joint_regressor.numpy() @ vertices)
    for split in ('training', 'evaluation'):
        for name, values in (('K', [K_HAND] * count), ('xyz', joints), ('verts', surfaces), ('scale', [.03] * count)):
            release.write_list(raw / f'{split}_{name}.json', values)
    release.write_list(raw / 'training_mano.json', mano)
    return np.array(surfaces), np.array(joints)


@pytest.mark.parametrize('complete_poses', [False, True])
def test_freihand_round_trip(tmp_path, model_dir, complete_poses):
    hand = get_human_model('mano', model_dir).double()
    surfaces, joints = write_freihand(tmp_path, hand, 3, complete_poses, np.random.default_rng(2))
    freihand.main([str(tmp_path), '--out', str(tmp_path / 'FreiHAND/data'), '--human_model_dir', str(model_dir)])
    coco = release.load_json(tmp_path / 'FreiHAND/data/freihand_train_coco.json')
    data = release.load_json(tmp_path / 'FreiHAND/data/freihand_train_data.json')
    assert list(data) == ['0', '1', '2']
    for i, hand_data in enumerate(data.values()):
        vertices, _ = release.run_fit(hand, hand_data['mano_param'])
        assert np.abs(vertices - surfaces[i]).max() < 1e-4
        assert np.allclose(hand_data['joint_3d'], joints[i], atol=1e-6)
        camera = hand_data['cam_param']
        assert camera == dict(focal=[480., 470.], princpt=[112., 110.])
    assert [image['db_idx'] for image in coco['images']] == [0, 1, 2] * 4  # four images of each hand
    assert coco['images'][7]['file_name'] == 'training/rgb/00000007.jpg'
    assert np.allclose(coco['annotations'][7]['bbox'], release.pixel_box(surfaces[1], **BOX), atol=.01)
    dataset = release.load_converted('FreiHAND', 'train', tmp_path, model_dir)
    assert len(dataset) == 12
    assert dataset.get_item(4, None)[2]['is_valid_fit'] == 1
    assert np.abs(place_fit(dataset.samples[4], dataset.body).vertices - surfaces[1]).max() < 1e-4


def test_freihand_without_surfaces(tmp_path, model_dir):
    hand = get_human_model('mano', model_dir)
    surfaces, _ = write_freihand(tmp_path, hand, 2, True, np.random.default_rng(8))
    (tmp_path / 'training_verts.json').unlink()
    freihand.main([str(tmp_path), '--split', 'train', '--out', str(tmp_path), '--human_model_dir', str(model_dir)])
    data = release.load_json(tmp_path / 'freihand_train_data.json')
    for expected, hand_data in zip(surfaces, data.values(), strict=True):
        vertices, _ = release.run_fit(hand, hand_data['mano_param'])
        # the joints are computed in another way than they were released: J_regressor @ surface
        assert np.linalg.norm(vertices - expected, axis=1).mean() < .003


def test_freihand_evaluation_boxes(tmp_path, model_dir):
    hand = get_human_model('mano', model_dir)
    surfaces, _ = write_freihand(tmp_path, hand, 2, False, np.random.default_rng(3))
    arguments = [str(tmp_path), '--split', 'eval', '--out', str(tmp_path / 'out')]
    freihand.main(arguments)
    coco = release.load_json(tmp_path / 'out/freihand_eval_coco.json')
    assert [image['db_idx'] for image in coco['images']] == [0, 1]
    assert np.allclose(coco['annotations'][1]['bbox'], release.pixel_box(surfaces[1], **BOX), atol=.01)
    assert release.load_json(tmp_path / 'out/freihand_eval_data.json')['1']['scale'] == .03
    for name in ('xyz', 'verts'):
        (tmp_path / f'evaluation_{name}.json').unlink()
    freihand.main(arguments)
    assert release.load_json(tmp_path / 'out/freihand_eval_coco.json')['annotations'][1]['bbox'] == [0, 0, 224, 224]


def test_freihand_takes_the_size_of_the_images_that_are_there(tmp_path, model_dir):
    write_freihand(tmp_path, get_human_model('mano', model_dir), 1, False, np.random.default_rng(3))
    (tmp_path / 'evaluation/rgb').mkdir(parents=True)
    cv2.imwrite(str(tmp_path / 'evaluation/rgb/00000000.jpg'), np.zeros((250, 200, 3), np.uint8))
    release.write_hidden_twins(tmp_path)
    freihand.main([str(tmp_path), '--split', 'eval', '--out', str(tmp_path / 'out')])
    image = release.load_json(tmp_path / 'out/freihand_eval_coco.json')['images'][0]
    assert (image['width'], image['height']) == (200, 250)


def test_freihand_mean_pose_conventions(model_dir):
    hand = get_human_model('mano', model_dir).double()
    pose = np.random.default_rng(4).normal(size=(1, 48)) * .3
    complete = freihand.convert_mean_pose(pose, hand.pose_mean[3:].numpy(), add=True)
    relative_vertices, _ = release.run_model(hand, pose[0], np.zeros(10), np.zeros(3))
    hand.pose_mean.zero_()  # flat_hand_mean=True
    complete_vertices, _ = release.run_model(hand, complete[0], np.zeros(10), np.zeros(3))
    assert np.abs(relative_vertices - complete_vertices).max() < 1e-6
    back = freihand.convert_mean_pose(complete, complete[0, 3:] - pose[0, 3:], add=False)
    assert np.abs(back - pose).max() < 1e-6


@pytest.mark.parametrize('damage, message', [
    (lambda raw: (raw / 'training_mano.json').unlink(), 'training_mano.json is missing'),
    (lambda raw: release.write_list(raw / 'training_xyz.json', np.zeros((2, 21, 3))),
     'training_xyz.json ends after 2 hands'),
    (lambda raw: release.write_list(raw / 'training_mano.json', np.zeros((3, 58))), 'hand 0 does not have the shape'),
    (lambda raw: release.write_list(raw / 'training_verts.json', np.random.default_rng(0).normal(size=(3, 778, 3))),
     'from the released hands'),
    (lambda raw: (raw / 'training_verts.json').write_text('[[[1, 2'), 'cut off')])
def test_freihand_names_what_is_wrong(tmp_path, model_dir, damage, message):
    write_freihand(tmp_path, get_human_model('mano', model_dir), 3, False, np.random.default_rng(5))
    damage(tmp_path)
    with pytest.raises(UserError, match=message):
        freihand.main([str(tmp_path), '--out', str(tmp_path / 'out'), '--human_model_dir', str(model_dir)])


NAN = float('nan')
HAND_FAULTS = {
    'no numbers': ('mano', lambda hand: 'damaged'), 'cut': ('verts', lambda hand: hand[:500]),
    'null': ('K', lambda hand: None),
    'nan': ('xyz', lambda hand: [[NAN] * 3] * 21), 'far': ('verts', lambda hand: [[1e30] * 3] * 778),
    'no focal length': ('K', lambda hand: [[0, 0, 112], [0, 0, 110], [0, 0, 1]]),
    'huge shape': ('mano', lambda hand: [[*hand[0][:48], *[5000.] * 10, *hand[0][58:]]]),
    'another pose': ('mano', lambda hand: [[*(np.array(hand[0][:48]) + 2).tolist(), *hand[0][48:]]]),
}


def spoil_hand(path, number, change):
    hands = release.load_json(path)
    hands[number] = change(hands[number])
    path.write_text(json.dumps(hands))


@pytest.mark.parametrize('fault', HAND_FAULTS)
def test_one_damaged_hand_is_left_out_and_listed(tmp_path, model_dir, capsys, fault):
    """The images of the others keep their hands and their numbers."""
    hand = get_human_model('mano', model_dir)
    surfaces, _ = write_freihand(tmp_path, hand, 4, False, np.random.default_rng(5))
    name, change = HAND_FAULTS[fault]
    spoil_hand(tmp_path / f'training_{name}.json', 1, change)
    words = [str(tmp_path), '--split', 'train', '--out', str(tmp_path / 'FreiHAND/data'), '--human_model_dir',
             str(model_dir)]
    with pytest.raises(UserError, match='1 of 4 hands cannot be converted, the last: .*hand 1'):
        freihand.main(words)
    assert not (tmp_path / 'FreiHAND').exists()
    freihand.main([*words, '--max_damaged', '0.3'])
    assert '1 of 4 hands are left out:\n  ' in capsys.readouterr().out
    coco = release.load_json(tmp_path / 'FreiHAND/data/freihand_train_coco.json')
    assert [image['id'] for image in coco['images']] == [i for i in range(16) if i % 4 != 1]
    assert coco['images'][4]['file_name'].endswith('00000006.jpg') and coco['images'][4]['db_idx'] == 2
    dataset = release.load_converted('FreiHAND', 'train', tmp_path, model_dir)
    assert len(dataset) == 12
    assert np.abs(place_fit(dataset.samples[4], dataset.body).vertices - surfaces[2]).max() < 1e-4


def test_evaluation_hands_are_all_needed(tmp_path, model_dir, capsys):
    """The server wants a prediction for each; a damaged truth gives the whole image as the box."""
    write_freihand(tmp_path, get_human_model('mano', model_dir), 2, False, np.random.default_rng(3))
    words = [str(tmp_path), '--split', 'eval', '--out', str(tmp_path / 'out'), '--max_damaged', '0.5']
    spoil_hand(tmp_path / 'evaluation_verts.json', 1, lambda hand: [[NAN] * 3] * 778)
    freihand.main(words)
    assert '1 of 2 evaluation hands have the whole image as their box' in capsys.readouterr().out
    assert release.load_json(tmp_path / 'out/freihand_eval_coco.json')['annotations'][1]['bbox'] == [0, 0, 224, 224]
    for change in (lambda k: [[0] * 3] * 3, lambda k: [[NAN] * 3] * 3, lambda k: 'damaged'):
        write_freihand(tmp_path, get_human_model('mano', model_dir), 2, False, np.random.default_rng(3))
        spoil_hand(tmp_path / 'evaluation_K.json', 1, change)
        with pytest.raises(UserError, match='evaluation_K.json: hand 1'):
            freihand.main(words)


def test_a_damaged_first_image_is_passed_over(tmp_path, model_dir):
    write_freihand(tmp_path, get_human_model('mano', model_dir), 1, False, np.random.default_rng(3))
    folder = tmp_path / 'evaluation/rgb'
    folder.mkdir(parents=True)
    (folder / '00000000.jpg').write_bytes(b'cut')
    words = [str(tmp_path), '--split', 'eval', '--out', str(tmp_path / 'out')]
    with pytest.raises(UserError, match='none of the images there can be read: .*00000000.jpg'):
        freihand.main(words)
    cv2.imwrite(str(folder / '00000001.jpg'), np.zeros((250, 200, 3), np.uint8))
    freihand.main(words)
    image = release.load_json(tmp_path / 'out/freihand_eval_coco.json')['images'][0]
    assert (image['width'], image['height']) == (200, 250)

"""Loss curves: which rows count, where they are drawn, and what is said when there are none."""
import json

import cv2
import numpy as np
import pytest

from common.errors import UserError
from tool import plot_log
from tool.chart import Axis, Curve, draw_panel


def write_log(folder, rows, tail=''):
    log = folder / 'log'
    log.mkdir(parents=True)
    (log / 'metrics.jsonl').write_text(''.join(json.dumps(row) + '\n' for row in rows) + tail)
    return folder


def row(epoch, step, loss, **more):
    return {'epoch': epoch, 'step': step, 'global_step': epoch * 4 + step, 'lr': 1e-3, 'loss': loss, **more}


def test_steps_repeated_after_a_resume_count_once_and_torn_lines_not_at_all(tmp_path):
    rows = [row(0, 0, 5.), row(0, 1, 4.), row(0, 2, 9.), row(0, 1, 3.), row(0, 2, 2.)]
    file = plot_log.find_log(write_log(tmp_path, rows, tail='{"epoch": 0, "st'))
    assert [(r['step'], r['loss']) for r in plot_log.read_rows(file)] == [(0, 5.), (1, 3.), (2, 2.)]


def test_epochs_of_different_length_and_the_one_under_way():
    rows = [row(0, s, 1.) for s in range(4)] + [row(1, s, 1.) for s in range(8)] + [row(2, 0, 1.), row(2, 1, 1.)]
    x = plot_log.epochs_of(rows)
    assert x[[0, 3, 4, 11, 12, 13]] == pytest.approx([.25, 1., 1.125, 2., 2.125, 2.25])


def test_smoothing_is_the_mean_of_the_known_values_around():
    values = np.array([1., 2., 6., np.nan, 4.])
    assert plot_log.smooth(values, 3) == pytest.approx([1.5, 3., 4., 5., 4.])
    assert plot_log.smooth(values, 1)[[0, 1, 2, 4]] == pytest.approx([1., 2., 6., 4.])


def test_terms_of_both_stages_get_panels_total_first_rate_last():
    rows = [row(0, 0, 3., loss_joint_fit=1., loss_mesh_fit=2.), row(1, 0, 1., loss_pose_param=1.)]
    panels = plot_log.panels_of({'': rows})
    assert list(panels) == ['loss', 'loss_joint_fit', 'loss_mesh_fit', 'loss_pose_param', 'lr']
    assert np.isfinite(panels['loss_pose_param'][0].smoothed).tolist() == [False, True]


def test_a_falling_line_is_drawn_from_top_left_to_bottom_right():
    x = np.linspace(0, 1, 50)
    img = draw_panel('loss', [Curve('', 0, x, 1 - x, 1 - x)])
    strong = np.argwhere(img[..., 2] < 25)[:, ::-1]  # the thick line's own colour: hardly any red
    strong = strong[strong[:, 0].argsort()]
    assert (np.diff(strong[:, 1]) >= -3).all() and np.ptp(strong[:, 0]) > 350 and np.ptp(strong[:, 1]) > 180


def test_axes_have_round_ticks():
    assert Axis(0., 10., (0, 100)).ticks(6) == [0, 2, 4, 6, 8, 10]
    assert Axis(.13, .48, (0, 100)).ticks(4) == pytest.approx([.2, .3, .4])
    log = Axis(1e-6, 1e-3, (100, 0), log=True)
    assert log.ticks(4) == pytest.approx([1e-6, 1e-5, 1e-4, 1e-3])
    assert log.pixel(np.array([1e-6, 1e-3])) == pytest.approx([100, 0])


def test_the_command_draws_one_run_beside_its_log_and_compares_two(tmp_path, capsys):
    one = write_log(tmp_path / 'one', [row(0, s, 5. - s, loss_joint_fit=2. - s / 4) for s in range(4)])
    two = write_log(tmp_path / 'two', [row(0, s, 50. / (s + 1) ** 3, lr_note=0.) for s in range(4)])
    plot_log.main([str(one)])
    assert cv2.imread(str(one / 'log' / 'losses.png')).shape == (300, 3 * 480, 3)
    out = tmp_path / 'both.png'
    plot_log.main([str(one), str(two / 'log' / 'metrics.jsonl'), '--out', str(out)])
    assert cv2.imread(str(out)).shape[0] == 600
    assert '4 steps, epoch 0, loss 2.0000' in capsys.readouterr().out


def test_mistakes_are_named(tmp_path):
    with pytest.raises(UserError, match='no metrics.jsonl there'):
        plot_log.main([str(tmp_path)])
    (tmp_path / 'metrics.jsonl').write_text('{}\n')
    with pytest.raises(UserError, match='holds no training step'):
        plot_log.main([str(tmp_path)])

"""The error of the mean pose."""
import json

from tool import mean_pose


def test_no_more_synthetic_images_are_drawn_than_used(tmp_path, capsys):
    mean_pose.main(['--cfg', 'nano', '--samples', '2', f'output_dir={tmp_path}', 'synthetic_test_size=3',
                    'num_thread=0'])
    assert 'Synthetic, the mean pose of Synthetic: mpjpe ' in capsys.readouterr().out
    key, = tmp_path.glob('cache/*/key.json')
    assert (json.loads(key.read_text())['split'], json.loads(key.read_text())['count']) == ('test', 3)

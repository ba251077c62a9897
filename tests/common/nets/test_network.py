"""The parts of the network: read-out, heads, the factorised bridge, widths, initial weights, what is trained."""
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from common.errors import UserError
from common.human_model import get_human_model
from common.nets.lixel import LixelHead, soft_argmax, soft_argmax_with_log_prob
from common.nets.module import ParamRegressor, Pose2Feat
from common.nets.resnet import ResNetBackbone
from main.model import get_model
from tests.tiny import tiny_config


def volume_pose2feat(layer, img_feat, coord):
    """Pose2Feat as published: the Gaussian volume itself, concatenated and convolved."""
    depth, height, width = layer.hm_shape
    zz, yy, xx = torch.meshgrid(*(torch.arange(n, dtype=coord.dtype) for n in (depth, height, width)), indexing='ij')
    x, y, z = (coord[:, :, i, None, None, None] for i in range(3))
    volume = torch.exp(-((xx - x) ** 2 + (yy - y) ** 2 + (zz - z) ** 2) / (2 * layer.sigma ** 2))
    return layer.conv(torch.cat([img_feat, volume.flatten(1, 2)], 1))


@pytest.mark.parametrize('hm_shape', [(8, 8, 8), (6, 8, 10)])
def test_factorised_pose2feat_is_the_convolution_of_the_volume(hm_shape):
    torch.manual_seed(0)
    layer = Pose2Feat(5, hm_shape, sigma=1.3, channels=7).double()
    img_feat = torch.randn(3, 7, *hm_shape[1:], dtype=torch.float64, requires_grad=True)
    coord = torch.rand(3, 5, 3, dtype=torch.float64) * 12 - 2  # some joints outside the image
    results = []
    for run in (layer, lambda *args: volume_pose2feat(layer, *args)):
        layer.zero_grad()
        img_feat.grad = None
        out = run(img_feat, coord)
        (out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
        results.append([out.detach(), img_feat.grad.clone(), *(p.grad.clone() for p in layer.parameters())])
    for got, want in zip(*results, strict=True):
        assert (got - want).abs().max() < 1e-12


def test_joints_get_no_gradient_through_pose2feat():
    layer = Pose2Feat(2, (4, 4, 4), 1., 3)
    coord = torch.rand(2, 2, 3, requires_grad=True)
    layer(torch.randn(2, 3, 4, 4), coord).sum().backward()
    assert coord.grad is None


def test_soft_argmax_of_a_peak_a_pair_and_a_flat_line():
    logits = torch.full((1, 16, 3), -100.)
    logits[0, 11, 0] = 100
    logits[0, [4, 9], 1] = 100
    logits[0, :, 2] = 1
    logits.requires_grad_()
    coord = soft_argmax(logits)
    assert torch.allclose(coord, torch.tensor([[11., 6.5, 7.5]]))
    coord.sum().backward()
    assert torch.isfinite(logits.grad).all()


def test_soft_argmax_keeps_its_precision_under_autocast():
    logits = torch.randn(4, 64, 50)
    with torch.autocast('cpu', torch.bfloat16):
        got, logp = soft_argmax_with_log_prob(logits)
    assert got.dtype == torch.float32
    assert torch.allclose(got, (logits.double().softmax(1) * torch.arange(64.)[:, None]).sum(1).float(), atol=1e-4)
    assert torch.allclose(logp, F.log_softmax(logits, 1))


def test_head_applies_its_layers_as_the_plain_modules_would():
    """The 1x1 convolutions run as matrix products; nn.Conv1d and BatchNorm1d on the published shapes say the same."""
    torch.manual_seed(0)
    head = LixelHead(6, in_channels=8, head_width=5, hm_shape=(12, 16, 16)).double()
    feat = torch.randn(3, 8, 2, 2, dtype=torch.float64)
    got = head(feat)
    up = head.deconv(feat)
    z = head.conv_z_1(feat.mean((2, 3))[:, :, None]).view(3, 5, 12)
    for axis, (conv, line) in enumerate(((head.conv_x, up.mean(2)), (head.conv_y, up.mean(3)), (head.conv_z_2, z))):
        heatmap = conv(line).softmax(2)
        want = (heatmap * torch.arange(heatmap.shape[2])).sum(2)
        assert (got[:, :, axis] - want).abs().max() < 1e-9


@pytest.mark.parametrize('resnet_type, channels', [(18, 64), (34, 64), (50, 256)])
def test_backbones_of_every_depth_and_width(resnet_type, channels):
    net = ResNetBackbone(resnet_type, width=8)
    early, late = net(torch.randn(2, 3, 64, 64))
    assert early.shape == (2, 8, 16, 16)
    assert late.shape == (2, channels, 2, 2) and net.out_channels == channels
    skipped, _ = net(early, skip_early=True)
    assert skipped is early


def test_backbone_is_torchvisions_resnet():
    from torchvision.models import resnet18
    theirs = resnet18(weights=None).eval()
    ours = ResNetBackbone(18).eval()
    ours.load_state_dict({k: v for k, v in theirs.state_dict().items() if not k.startswith('fc.')})
    theirs.avgpool, theirs.fc = nn.Identity(), nn.Identity()
    x = torch.randn(1, 3, 64, 64)
    assert torch.equal(ours(x)[1].flatten(1), theirs(x))


def test_pretrained_weights_from_a_file_and_their_three_ways_out(tmp_path):
    net = ResNetBackbone(18, width=8)
    state = {**net.state_dict(), 'fc.weight': torch.zeros(2, 64), 'fc.bias': torch.zeros(2)}
    torch.save({k: v + 1 if v.is_floating_point() else v for k, v in state.items()}, tmp_path / 'weights.pth')
    other = ResNetBackbone(18, width=8)
    other.load_imagenet(tmp_path / 'weights.pth')
    assert torch.equal(other.conv1.weight, net.conv1.weight + 1)
    (tmp_path / 'page.pth').write_text('<html>')
    for file, width in (('page.pth', 8), ('weights.pth', 16), ('absent.pth', 8)):
        with pytest.raises(UserError, match='pretrained_backbone=false') as error:
            ResNetBackbone(18, width=width).load_imagenet(tmp_path / file)
        assert 'pretrained_backbone=FILE' in str(error.value) and '--continue' in str(error.value)
    with pytest.raises(UserError, match='resnet_type=20'):
        ResNetBackbone(20)


def test_regressor_gives_rotations_and_shape():
    torch.manual_seed(0)
    pose, shape = ParamRegressor(29, 24)(torch.rand(3, 29, 3) * 64)
    assert pose.shape == (3, 72) and shape.shape == (3, 10)
    assert pose.view(3, 24, 3).norm(dim=2).max() <= torch.pi + 1e-5


@pytest.fixture(scope='module')
def tiny_model(tmp_path_factory):
    def make(*overrides):
        torch.manual_seed(0)
        config = tiny_config(tmp_path_factory.mktemp('out'), *overrides)
        return get_model(config, get_human_model(config.human_model), 'train')
    return make


def test_initial_weights(tiny_model):
    net = tiny_model('head_width=16', 'resnet_width=16')
    assert abs(net.mesh_net.deconv[0].weight.std() - 0.001) < 5e-5
    assert abs(net.pose2feat.conv[0].weight.std() - 0.001) < 5e-5 and net.pose2feat.conv[0].bias.abs().max() == 0
    assert abs(net.param_regressor.fc[3].weight.std() - 0.01) < 5e-4 and net.param_regressor.fc[0].bias.abs().max() == 0
    bound = 16 ** -.5  # PyTorch's default for a 1x1 Conv1d
    assert 0.98 * bound < net.mesh_net.conv_x[0].weight.abs().max() <= bound


def test_mesh_half_of_another_width(tiny_model):
    net = tiny_model('mesh_width=2').eval()
    assert (net.pose_backbone.out_channels, net.mesh_backbone.out_channels) == (32, 16)
    stem, joint, _ = net.predict_joints(torch.rand(1, 3, 32, 32))
    assert net.predict_mesh(stem, joint).shape == (1, 6890, 3)
    assert tiny_model('mesh_width=0').mesh_backbone.out_channels == 32


def test_body_model_and_topology_stay_out_of_the_snapshot(tiny_model):
    names = tiny_model().state_dict().keys()
    assert {name.split('.')[0] for name in names} == {
        'pose_backbone', 'pose_net', 'pose2feat', 'mesh_backbone', 'mesh_net', 'param_regressor'}


def batch(net, n=2):
    """Random input, targets and masks that all count."""
    joints, verts = net.human_model.joint_num, net.human_model.vertex_num
    targets = {'orig_joint_img': torch.rand(n, joints, 3) * 8, 'fit_joint_img': torch.rand(n, joints, 3) * 8,
               'fit_mesh_img': torch.rand(n, verts, 3) * 8, 'orig_joint_cam': torch.rand(n, joints, 3),
               'fit_joint_cam': torch.rand(n, joints, 3), 'pose_param': torch.rand(n, 72),
               'shape_param': torch.rand(n, 10)}
    meta = {'orig_joint_valid': torch.ones(n, joints, 1), 'orig_joint_trunc': torch.ones(n, joints, 1),
            'fit_joint_trunc': torch.ones(n, joints, 1), 'fit_mesh_trunc': torch.ones(n, verts, 1),
            'is_valid_fit': torch.ones(n), 'is_3D': torch.ones(n)}
    return {'img': torch.rand(n, 3, 32, 32)}, targets, meta


def test_losses_come_per_sample_and_the_smooth_variant_drops_two(tiny_model):
    for overrides, count in (([], 7), (['orig_joint_loss=false'], 5), (['heatmap_loss_weight=1'], 8)):
        net = tiny_model(*overrides)
        losses = net(*batch(net), 'train')
        assert len(losses) == count and {v.shape for v in losses.values()} == {(2,)}
        assert ('joint_orig' in losses) == ('mesh_joint_orig' in losses) == ('orig_joint_loss=false' not in overrides)


def test_weights_of_the_mesh_losses(tiny_model):
    plain, heavy = tiny_model(), tiny_model('normal_loss_weight=0.3', 'edge_loss_weight=5')
    torch.manual_seed(1)
    data = batch(plain)
    losses, weighted = ({k: v.sum().item() for k, v in net(*data, 'train').items()} for net in (plain, heavy))
    factors = dict.fromkeys(losses, 1) | {'mesh_normal': 3, 'mesh_edge': 5}
    assert weighted == pytest.approx({name: losses[name] * factors[name] for name in losses}, rel=1e-5)


def test_weight_of_x_and_y_in_the_param_stage(tiny_model):
    _, targets, meta = batch(tiny_model())
    targets = {name: torch.zeros_like(target) for name, target in targets.items()}
    joints = torch.tensor([-1., 2., 10.]).expand(2, 29, 3)
    outputs = targets['pose_param'], targets['shape_param'], joints
    for weight, mean in ((1, 13 / 3), (12, 46 / 3), (0, 10 / 3)):
        losses = tiny_model(f'joint_xy_weight={weight}').param_losses(*outputs, targets, meta)
        assert losses['joint_orig_cam'].tolist() == losses['joint_fit_cam'].tolist() == pytest.approx([mean] * 2)


def test_pose_only_epochs_leave_the_mesh_half_alone(tiny_model):
    net = tiny_model('heatmap_loss_weight=1')
    net.pose_only = True
    losses = net(*batch(net), 'train')
    assert set(losses) == {'joint_fit', 'joint_orig', 'joint_heatmap'}
    sum(v.mean() for v in losses.values()).backward()
    trained = {n.split('.')[0] for n, p in net.named_parameters() if p.grad is not None}
    assert trained == {'pose_backbone', 'pose_net'}


def test_frozen_pose_half_stays_bit_identical_while_the_mesh_half_trains(tiny_model):
    net = tiny_model('freeze_pose=true').train()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    losses = net(*batch(net), 'train')
    assert set(losses) == {'mesh_fit', 'mesh_joint_fit', 'mesh_joint_orig', 'mesh_normal', 'mesh_edge'}
    sum(v.mean() for v in losses.values()).backward()
    trained = {n.split('.')[0] for n, p in net.named_parameters() if p.grad is not None}
    assert trained == {'pose2feat', 'mesh_backbone', 'mesh_net'}
    moved = {k.split('.')[0] for k, v in net.state_dict().items() if not torch.equal(v, before[k])}
    assert moved == trained


def test_param_stage_trains_the_regressor_alone_and_moves_batchnorm_unless_frozen(tiny_model):
    for frozen in (False, True):
        net = tiny_model('stage=param', f'freeze_bn={frozen}').train()
        before = {k: v.clone() for k, v in net.state_dict().items()}
        losses = net(*batch(net), 'train')
        assert set(losses) == {'pose_param', 'shape_param', 'joint_orig_cam', 'joint_fit_cam'}
        sum(v.mean() for v in losses.values()).backward()
        assert {n.split('.')[0] for n, p in net.named_parameters() if p.grad is not None} == {'param_regressor'}
        moved = {k.split('.')[0] for k, v in net.state_dict().items() if not torch.equal(v, before[k])}
        assert moved == ({'param_regressor'} if frozen else
                         {'param_regressor', 'pose_backbone', 'pose_net', 'pose2feat', 'mesh_backbone', 'mesh_net'})


def test_test_mode_gives_batch_first_tensors_and_root_relative_metres(tiny_model):
    net = tiny_model('stage=param').eval()
    out = net(batch(net, 3)[0], {}, {'bb2img_trans': torch.zeros(3, 2, 3)}, 'test')
    assert {v.shape[0] for v in out.values()} == {3}
    root = (net.human_model.joint_regressor @ out['mesh_coord_cam'])[:, net.human_model.root_joint_idx]
    assert root.abs().max() < 1e-5
    assert not any(v.requires_grad for v in out.values())


def test_other_heatmap_sizes(tiny_model):
    for size, image in ((8, 32), (16, 64), (32, 128)):
        net = tiny_model(f'input_img_shape=[{image},{image}]', f'output_hm_shape=[{size},{size},{size}]').eval()
        out = net({'img': torch.rand(1, 3, image, image)}, {}, {}, 'test')
        assert 0 <= out['mesh_coord_img'].min() and out['mesh_coord_img'].max() <= size - 1

"""Which values the settings may have."""
import math

from common.errors import UserError, shown
from data import require_dataset

CHOICES = {'stage': ('lixel', 'param'), 'body_model': ('auto', 'smpl', 'mano', 'open_body', 'open_hand'),
           'resnet_type': (18, 34, 50, 101, 152), 'lr_schedule': ('step', 'cosine'), 'optimizer': ('adam', 'adamw'),
           'amp': ('none', 'bf16', 'fp16'), 'missing_image': ('skip', 'error'), 'h36m_protocol': (1, 2),
           'coco_fit_check': ('published', 'exact'), 'pw3d_gender': ('annotated', 'neutral'),
           'rootnet_box_format': ('xywh', 'xyxy')}
POSITIVE = ('resnet_width', 'head_width', 'sigma', 'lr', 'lr_dec_factor', 'train_batch_size', 'test_batch_size',
            'h36m_train_every', 'h36m_test_every', 'fit_limit_mm', 'fit_limit_lixel', 'grad_accum', 'log_every',
            'lixel_epochs', 'param_epochs', 'end_epoch', 'synthetic_train_size', 'synthetic_test_size',
            'synthetic_img_size')
NOT_NEGATIVE = ('num_thread', 'seed', 'keep_snapshots', 'snapshot_every', 'pose_epochs', 'warmup_iters', 'clip_grad',
                'weight_decay', 'normal_loss_weight', 'edge_loss_weight', 'heatmap_loss_weight', 'joint_xy_weight',
                'aug_scale', 'aug_rotation', 'aug_color', 'synthetic_max_heading', 'synthetic_occlusion',
                'max_missing_images')
BELOW_ONE = ('aug_scale', 'aug_color')  # a box or a colour may shrink, but not to nothing
# Beyond these a run would not fail but fill the memory, or never end; the published settings are far from them.
LARGEST = {'resnet_width': 512, 'head_width': 4096, 'synthetic_img_size': 4096,
           'synthetic_train_size': 10 ** 9, 'synthetic_test_size': 10 ** 9,
           'synthetic_occlusion': 1, 'max_missing_images': 1, 'synthetic_max_heading': 180,
           'num_thread': 1024, 'seed': 2 ** 63 - 1, 'train_batch_size': 10 ** 6,
           'test_batch_size': 10 ** 6, 'grad_accum': 10 ** 6, 'lixel_epochs': 10 ** 6,
           'param_epochs': 10 ** 6, 'end_epoch': 10 ** 6, 'warmup_iters': 10 ** 9}
LARGEST_INPUT, LARGEST_DEPTH = 4096, 1024  # pixels, lixels
SMALLEST_PICTURE = 32  # pixels; on less there is no room to draw a person
FOLDERS = ('data_dir', 'human_model_dir', 'output_dir')
STRIDE = 4  # input pixels per lixel in x and y: the backbone's map is 32 times smaller, the heads double it thrice


def check_values(values, source=''):
    """UserError, which begins with `source`, for the first of {name: value} that no run could use. The names are those
    that a user writes."""
    for key, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f'{source}{key}={value}: must be a finite number')
        if isinstance(value, str) and '\0' in value:
            raise UserError(f'{source}{key} is not a text: it has a character that no name can have')
    for key, choices in CHOICES.items():
        if values[key] not in choices:
            raise UserError(f'{source}{key}={shown(values[key])}: one of {", ".join(map(str, choices))}')
    for keys, is_good, rule in ((POSITIVE, lambda value: value > 0, 'must be above 0'),
                                (NOT_NEGATIVE, lambda value: value >= 0, 'must not be negative'),
                                (BELOW_ONE, lambda value: value < 1, 'must be below 1')):
        for key in keys:
            if values[key] is not None and not is_good(values[key]):
                raise UserError(f'{source}{key}={values[key]}: {rule}')
    for key, largest in LARGEST.items():
        if values[key] is not None and values[key] > largest:
            raise UserError(f'{source}{key}={values[key]}: must not be above {largest}')
    side = values['synthetic_img_size']
    if side < SMALLEST_PICTURE:
        raise UserError(f'{source}synthetic_img_size={side}: at least {SMALLEST_PICTURE} pixels')
    for key in FOLDERS:
        if not values[key]:
            raise UserError(f'{source}{key} is empty: name a folder, or leave it out for the default')
    for name in (*values['trainset_3d'], *values['trainset_2d'], values['testset']):
        require_dataset(name, source)


def check_train_batch(size):
    """UserError for a batch (samples per device) that batch normalisation cannot train on."""
    if size < 2:
        raise UserError(f'train_batch_size={size}: batch normalisation needs two samples at least on every device')


def check_heat_maps(input_img_shape, output_hm_shape):
    """UserError unless heat maps (depth, height, width) lixels are what the network makes of (height, width) pixels."""
    depth, *plane = output_hm_shape
    if not 1 <= depth <= LARGEST_DEPTH or any(
            not 32 <= size <= LARGEST_INPUT or size % 32 for size in input_img_shape):
        raise UserError(f'input_img_shape={list(input_img_shape)} output_hm_shape={list(output_hm_shape)}: height and '
                        f'width of the input must be multiples of 32 pixels up to {LARGEST_INPUT}, and the depth at '
                        f'least one lixel and at most {LARGEST_DEPTH}')
    wanted = [size // STRIDE for size in input_img_shape]
    if plane != wanted:
        raise UserError(f'output_hm_shape={list(output_hm_shape)}: an input of {input_img_shape[0]} x '
                        f'{input_img_shape[1]} pixels gives heat maps of {wanted[0]} x {wanted[1]} lixels: set '
                        f'output_hm_shape=[{depth},{wanted[0]},{wanted[1]}], or another input_img_shape')

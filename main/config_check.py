"""Which values the settings may have."""
from common.errors import UserError
from data import require_dataset

CHOICES = {'stage': ('lixel', 'param'), 'body_model': ('auto', 'smpl', 'mano', 'open_body', 'open_hand'),
           'resnet_type': (18, 34, 50, 101, 152), 'lr_schedule': ('step', 'cosine'), 'optimizer': ('adam', 'adamw'),
           'amp': ('none', 'bf16', 'fp16'), 'missing_image': ('skip', 'error'), 'h36m_protocol': (1, 2),
           'pw3d_gender': ('annotated', 'neutral'), 'rootnet_box_format': ('xywh', 'xyxy')}
POSITIVE = ('resnet_width', 'head_width', 'sigma', 'lr', 'lr_dec_factor', 'train_batch_size', 'test_batch_size',
            'h36m_train_every', 'h36m_test_every', 'fit_limit_mm', 'fit_limit_lixel', 'grad_accum', 'log_every',
            'lixel_epochs', 'param_epochs', 'end_epoch_override', 'synthetic_train_size', 'synthetic_test_size',
            'synthetic_img_size')
NOT_NEGATIVE = ('num_thread', 'seed', 'keep_snapshots', 'pose_epochs', 'warmup_iters', 'clip_grad', 'weight_decay',
                'normal_loss_weight', 'heatmap_loss_weight', 'aug_scale', 'aug_rotation', 'aug_color')
BELOW_ONE = ('aug_scale', 'aug_color')  # a box or a colour may shrink, but not to nothing
STRIDE = 4  # input pixels per lixel in x and y: the backbone's map is 32 times smaller, the heads double it thrice


def check_values(values, source=''):
    """UserError, which begins with `source`, for the first of {field: value} that no run could use."""
    for key, choices in CHOICES.items():
        if values[key] not in choices:
            raise UserError(f'{source}{key}={values[key]}: one of {", ".join(map(str, choices))}')
    for keys, is_good, rule in ((POSITIVE, lambda value: value > 0, 'must be above 0'),
                                (NOT_NEGATIVE, lambda value: value >= 0, 'must not be negative'),
                                (BELOW_ONE, lambda value: value < 1, 'must be below 1')):
        for key in keys:
            if values[key] is not None and not is_good(values[key]):
                raise UserError(f'{source}{key}={values[key]}: {rule}')
    for name in (*values['trainset_3d'], *values['trainset_2d'], values['testset']):
        require_dataset(name, source)


def check_heat_maps(input_img_shape, output_hm_shape):
    """UserError unless heat maps (depth, height, width) lixels are what the network makes of (height, width) pixels."""
    depth, *plane = output_hm_shape
    if depth < 1 or any(size < 32 or size % 32 for size in input_img_shape):
        raise UserError(f'input_img_shape={list(input_img_shape)} output_hm_shape={list(output_hm_shape)}: height and '
                        'width of the input must be multiples of 32 pixels, and the depth at least one lixel')
    wanted = [size // STRIDE for size in input_img_shape]
    if plane != wanted:
        raise UserError(f'output_hm_shape={list(output_hm_shape)}: an input of {input_img_shape[0]} x '
                        f'{input_img_shape[1]} pixels gives heat maps of {wanted[0]} x {wanted[1]} lixels: set '
                        f'output_hm_shape=[{depth},{wanted[0]},{wanted[1]}], or another input_img_shape')

"""The settings that the data sets read, so that nothing here needs the whole configuration (main/config.py)."""
from typing import Protocol


class Settings(Protocol):
    """What `build_dataset` takes as `cfg`. main/config.py says what each setting does, and in which unit."""
    data_dir: str
    human_model_dir: str
    output_dir: str
    cache_dir: str
    use_index: bool
    input_img_shape: tuple[int, int]
    output_hm_shape: tuple[int, int, int]
    seed: int
    num_thread: int
    vis: bool
    aug_scale: float
    aug_rotation: float
    aug_color: float
    missing_image: str
    max_missing_images: float
    exclude: list[str]
    use_gt_info: bool
    rootnet_box_format: str
    fit_limit_mm: float
    fit_limit_lixel: float
    coco_fit_check: str
    h36m_protocol: int
    h36m_train_every: int
    h36m_train_cameras: list[int]
    h36m_test_every: int
    h36m_test_cameras: list[int]
    pw3d_gender: str
    synthetic_train_size: int
    synthetic_test_size: int
    synthetic_img_size: int
    synthetic_max_heading: float
    synthetic_occlusion: float
    synthetic_cache: bool | str

    @property
    def human_model(self) -> str:
        """Name of the network's body model."""

    @property
    def bbox_3d_size(self) -> float:
        """Side of the cube around a body or hand, metres."""

"""The page's button "find people": a detector that is made when it is first asked for."""
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from common.demo.inputs.detector import Detector
from common.errors import UserError, one_line


class Finder:
    """Finds the people of images.

    Args:
        make: makes the detector. UserError: its weights cannot be downloaded.
        name: of the detector.
        megabytes: to be downloaded for it; 0 for none.
    """

    def __init__(self, make: Callable[[], Detector], name: str, megabytes: float) -> None:
        self.make = make
        self.name = name
        self.megabytes = megabytes
        self.making = threading.Lock()
        self.detector: Detector | None = None

    def about(self) -> dict[str, Any]:
        """For the explanation of the button: the name, and how much is still to be downloaded."""
        return {'name': self.name, 'megabytes': 0 if self.detector else round(self.megabytes)}

    def prepare(self) -> None:
        """Make the detector, the first time. UserError: it cannot be had."""
        with self.making:
            if self.detector is None:
                try:
                    self.detector = self.make()
                except UserError as error:
                    cause = error.__cause__ or error
                    reason = one_line(getattr(cause, 'reason', cause))  # URLErrors put it into brackets
                    raise UserError(f'the detector of people cannot be downloaded to this computer ({reason}): draw '
                                    'a box around each person') from error

    def __call__(self, image: np.ndarray) -> list[list[float]]:
        """The people of an image (H, W, 3) uint8 RGB, after `prepare`: their boxes, xywh, pixels."""
        assert self.detector is not None
        return [[round(float(value), 1) for value in box] for box in self.detector(image)]

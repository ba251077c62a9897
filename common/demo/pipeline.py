"""The demo in one piece: boxes of an image in, people in camera space and their record out."""
from dataclasses import dataclass, field

from common.demo.outputs.record import JointReader, Record
from common.demo.people.placer import Placer
from common.demo.people.prediction import Camera
from common.demo.people.predictor import BoxPredictor


@dataclass
class Pipeline:
    """What images, videos and the web page share."""
    predictor: BoxPredictor
    placer: Placer
    joints: JointReader  # the joints of the record
    warnings: list[str] = field(default_factory=list)  # for all records: what makes any result doubtful
    axes: str = 'y_up'  # of the OBJ files

    def record(self, source: str, size: tuple[int, int], camera: Camera) -> Record:
        """The record of an image or video.

        Args:
            source: path or name of the file.
            size: (height, width), pixels.
            camera: of the image.
        """
        return Record(source, size, self.predictor.info, self.joints, self.predictor.faces, camera,
                      list(self.warnings), self.axes)

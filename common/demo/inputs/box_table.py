"""The boxes of a box file, looked up by image or by frame."""
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PureWindowsPath

from common.demo.inputs.boxes import RawBox
from common.demo.inputs.images import IMAGE_SUFFIXES
from common.errors import UserError, shown

MAX_NAMED = 20  # names in a message
NO_IMAGE = 'no image'


@dataclass
class BoxTable:
    """Boxes by the names of images (or numbers of frames), or by their place in a list.

    Attributes:
        path: of the file, for messages.
        named: name or number, as the file has it -> boxes.
        listed: the boxes of each image or frame in their order, where the file gives no names.
        has_ids: each entry says whose box it is; one that fits nothing is an error.
        claimed: names that fit an input as they are, and so no other file of that name.
    """
    path: Path
    named: dict[str, list[RawBox]]
    listed: list[list[RawBox]] = field(default_factory=list)
    has_ids: bool = False
    claimed: set[str] = field(default_factory=set)

    def of_image(self, path: Path, number: int) -> list[RawBox]:
        """The boxes of the image file `path`, which is the input of that number."""
        name = self._name_of(path)
        if name is not None:
            return self.named[name]
        if number < len(self.listed):
            return self.listed[number]
        return []

    def of_frame(self, path: Path, number: int) -> list[RawBox]:
        """The boxes of a frame of the video `path`. What bears the name of the video is for all frames."""
        if number < len(self.listed):
            return self.listed[number]
        if number in self._frames:
            return [box for name in self._frames[number] for box in self.named[name]]
        return self.named.get(str(path)) or self.named.get(path.name, [])

    def check_images(self, paths: list[Path], others: Iterable[Path] = ()) -> str:
        """Check that all boxes belong to images.

        Args:
            paths: of the images that are read.
            others: images that are there, too, such as the other ones of a folder.
        Returns:
            A note, or ''.
        Raises:
            UserError: an entry names an image that is not there, or names are missing where images are not those of one
                folder in the order of their names.
        """
        if self.listed and (len({path.parent for path in paths}) > 1
                            or paths != sorted(paths, key=lambda path: path.name)):
            raise UserError(f'--bbox_file {self.path}: a list without names is for the images of one folder, in the '
                            'order of their names; name the images, such as {"photo.jpg": [[120, 40, 210, 480]]}')
        for path in paths:
            names = self._by_last_part.get(path.name, [])
            self.claimed |= {name for name in names if _ends_with(path, name) and name != path.name}
        used = {self._name_of(path) for path in (*paths, *others)}
        names = [name for name in self.named if name not in used]
        return self._complain(names, NO_IMAGE, len(self.listed) - len(paths))

    def check_frames(self, path: Path, count: int | None = None) -> str:
        """The same for the video `path` with so many frames; None: they are not counted yet."""
        numbers = {name: number for number, names in self._frames.items() for name in names}
        left = []
        for name in self.named:
            number = numbers.get(name)
            if number is None and name not in (str(path), path.name):
                left.append(name)
            if number is not None and count is not None and number >= count:
                left.append(name)
        surplus = 0
        if count is not None:
            surplus = len(self.listed) - count
        return self._complain(left, 'no frame (they are counted from 0)', surplus)

    def _complain(self, names: list[str], what: str, surplus: int) -> str:
        if surplus > 0:
            return f'{self.path}: its last {surplus} entries fit {what}'
        if not names:
            return ''
        more = ' ...' if len(names) > MAX_NAMED else ''
        text = f'{self.path}: {len(names)} of its names fit {what}: {", ".join(map(shown, names[:MAX_NAMED]))}{more}'
        if self.has_ids:
            if all(map(is_number, self.named)) and what == NO_IMAGE:
                text += ('. A number is found in names such as 000000000139.jpg; for other names the file needs the '
                         'list "images" of COCO, with "id" and "file_name"')
            raise UserError(f'--bbox_file {text}')
        return text

    def _name_of(self, path: Path) -> str | None:
        """The name in the file that means an image: its path or the end of it, with or without the ending."""
        keys = [path.name, path.stem]
        if is_number(path.stem):
            keys.append(str(int(path.stem)))  # COCO's 000000000139.jpg has the id 139
        if str(path) in self.named:
            return str(path)
        for key in keys:
            if key in self.named:
                return key
            names = self._by_last_part.get(key, [])
            fitting = [name for name in names if _ends_with(path, name)]
            if fitting:
                return max(fitting, key=len)
            if len(names) == 1 and names[0] not in self.claimed:  # the same file in another place
                return names[0]
        return None

    @cached_property
    def _by_last_part(self) -> dict[str, list[str]]:
        """{last part of a path: the names that end with it}."""
        found: dict[str, list[str]] = {}
        for name in self.named:
            found.setdefault(PureWindowsPath(name).name, []).append(name)
        return found

    @cached_property
    def _frames(self) -> dict[int, list[str]]:
        """{frame: the names that mean it}: "17", "00017" and "17.jpg" do."""
        found: dict[int, list[str]] = {}
        for name in self.named:
            path = PureWindowsPath(name)
            if is_number(path.stem) and (not path.suffix or path.suffix.lower() in IMAGE_SUFFIXES):
                found.setdefault(int(path.stem), []).append(name)
        return found


def is_number(text: str) -> bool:
    """Whether a text is a whole number from 0 that `int` reads quickly."""
    return text.isdecimal() and len(text) < 20


def _ends_with(path: Path, name: str) -> bool:
    """Whether the last parts of a path are those of a name."""
    parts = PureWindowsPath(name).parts
    return path.absolute().parts[-len(parts):-1] == parts[:-1]

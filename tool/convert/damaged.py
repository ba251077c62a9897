"""Items of a release that are missing or damaged: left out, counted, and listed at the end of a conversion."""
from common.errors import UserError


class DamagedItem(UserError):
    """An item (a clip, a sequence, a hand) that cannot be converted; the others can."""


class Damaged:
    """The damaged ones of `total` items.

    Args:
        total: How many items there are.
        unit: What they are, for messages: 'clips'.
        max_share: Of them that may be damaged.
    Raises:
        UserError: The share is not from 0 to 1.
    """

    def __init__(self, total: int, unit: str, max_share: float) -> None:
        if not 0 <= max_share <= 1:
            raise UserError(f'--max_damaged {max_share}: must be from 0 to 1')
        self.total = total
        self.unit = unit
        self.max_share = max_share
        self.errors: list[DamagedItem] = []

    def add(self, error: DamagedItem) -> None:
        """Count an item. UserError: there are more than the share allows."""
        self.errors.append(error)
        count = len(self.errors)
        if count > self.max_share * self.total:
            raise UserError(f'{count} of {self.total} {self.unit} cannot be converted, the last: {error}. '
                            f'--max_damaged {count / self.total:.2g} or more goes on without them') from error

    def report(self, what: str = 'are left out') -> None:
        """Print how many there were, and why each of them."""
        if self.errors:
            print(f'{len(self.errors)} of {self.total} {self.unit} {what}:')
        for error in self.errors:
            print(f'  {error}')

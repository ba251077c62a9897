"""Whether the loader processes keep up with the network: said once, at the start of a training."""
import logging

from common.devices import processes
from common.devices.cpus import core_count
from common.train.transport import Transport

log = logging.getLogger(__name__)
MEASURED = 10  # steps, at least
NOTABLE = 0.1  # share of the time that may go by waiting for data


class Pace:
    """Compares what loader processes can give with what a training takes.

    Args:
        transport: Of this process's loader. (Not the loader itself, whose processes end with it.)
        step_size: Samples of one step of all processes.
    """

    def __init__(self, transport: Transport, step_size: int) -> None:
        self.transport = transport
        self.step_size = step_size
        self.begun = False
        self.said = False
        self.steps = 0
        self.seconds = 0.
        self.waiting = 0.

    def add(self, steps: int, seconds: float, waiting: float) -> None:
        """Count some steps, in all processes the same; after enough of them the first process reports.

        Args:
            steps: How many. The first of a training do not count: they start processes and choose convolutions.
            seconds: Of these steps. waiting: Of which for data.
        """
        if not self.begun:
            self.begun = True
            return
        self.steps += steps
        self.seconds += seconds
        self.waiting += waiting
        if self.said or self.steps < MEASURED:
            return
        self.said = True
        gathered = processes.gather_objects((self.transport.workers, self.transport.rate))
        if gathered is not None:
            self.report(sum(workers for workers, _ in gathered), sum(rate for _, rate in gathered))

    def report(self, workers: int, given: float) -> None:
        """Log how many images per second all loader processes give, and warn if they are what limits the training."""
        who = f'loader processes: {workers}; together they'
        if not workers:
            who = 'loader processes: 0; the training itself'
        log.info('%s can read %.4g images/s here (measured on the first batches)', who, given)
        share = self.waiting / self.seconds
        taken = self.steps * self.step_size / self.seconds
        # a GPU works on while the program waits for data: only with both is the network the faster one
        if share > NOTABLE and (not workers or taken > (1 - NOTABLE) * given):
            log.warning('the network is faster than the loading: %.0f%% of the time is spent waiting for data '
                        '(%.4g images/s are trained on): raise num_thread (this machine has %d cores), put the data '
                        'on a faster disk, or make the images smaller', 100 * share, taken, core_count())

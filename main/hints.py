"""What to run after a training, as the line to type."""
import os
import shlex

from common.devices import processes

OF_ONE_STAGE = ('end_epoch=', 'lr_dec_epoch=')  # settings that the next stage does not take over


def resume_hint(argv: list[str], snapshot: str | None) -> str:
    """'Resume with: <command>' for a run that was stopped.

    Args:
        argv: the words that started the run. snapshot: its --snapshot.
    """
    words = without_snapshot(argv, snapshot)
    if '--continue' not in words:
        words.append('--continue')
    return launched('Resume', words)


def next_hint(argv: list[str], snapshot: str | None, stage: str, epoch: int) -> str:
    """What follows a stage that has ended: the test, and after the lixel stage the param stage.

    Args:
        argv: the words that started the run. snapshot: its --snapshot.
        stage: that has ended.
        epoch: of its last snapshot.
    """
    words = without_snapshot(argv, snapshot)
    words = [word for word in words if word not in ('--continue', '--stage', f'--stage={stage}', stage)]
    test = [words[0].replace('train.py', 'test.py'), '--test_epoch', str(epoch), *words[1:]]
    lines = f'The {stage} stage is finished. Test it with: python {shlex.join(test)}'
    if stage == 'param':
        return lines
    words = [word for word in words if not word.startswith(OF_ONE_STAGE)]
    train = [words[0], '--stage', 'param', '--continue', *words[1:]]
    return f'{lines}\n{launched("Train the parameters", train)}'


def without_snapshot(argv: list[str], snapshot: str | None) -> list[str]:
    """The words without --snapshot FILE."""
    given = ('--snapshot', snapshot, f'--snapshot={snapshot}')
    return [word for word in argv if word not in given]


def launched(what: str, words: list[str]) -> str:
    """'<what> with: <command>', by torchrun where this run was."""
    command = shlex.join(words)
    if not processes.active():
        return f'{what} with: python {command}'
    if int(os.environ.get('GROUP_WORLD_SIZE', 1)) > 1:
        return f'{what}, on every machine with the options that torchrun had there: torchrun ... {command}'
    return f'{what} with: torchrun --nproc_per_node {os.environ["LOCAL_WORLD_SIZE"]} {command}'

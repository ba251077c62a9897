"""Do memory, open files and processes of a long run stay what they are? A slow check, run by hand:

    python tests/faults/running_soak.py train FOLDER          # 3,000 steps of nano at batch 4, two loader processes
    python tests/faults/running_soak.py demo FOLDER           # 1,000 images in one run
    python tests/faults/running_soak.py train FOLDER 600 lr=1e-4      # fewer, with other settings

It starts the program, looks at it and its child processes twenty times a minute, and prints a table and a verdict.
Memory is PSS, which counts pages that several processes share once, without mapped files: those are the libraries, and
their share depends on who else on the machine has them loaded. Exit code 1: it grew by 2 % or more after the first
tenth of the run.
"""
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.demo_tools import write_image  # noqa: E402


def family(pid):
    """{pid: state} of a process and its descendants; state 'Z' is a zombie."""
    parents, states = {}, {}
    for path in Path('/proc').glob('[0-9]*/stat'):
        try:
            state, parent = path.read_text().rpartition(')')[2].split()[:2]
        except OSError:  # it has just ended
            continue
        parents[int(path.parent.name)], states[int(path.parent.name)] = int(parent), state
    found = {pid}
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return {child: states[child] for child in found if child in states}


def look(pid):
    """(PSS in MB, open files, processes, zombies) of a process and its descendants, or None when they are changing."""
    members = family(pid)
    if members.get(pid, 'Z') == 'Z':  # it has just ended
        return None
    try:
        pss = sum(int(line.split()[1]) for child, state in members.items() if state != 'Z'
                  for line in Path(f'/proc/{child}/smaps_rollup').read_text().splitlines()
                  if line.startswith(('Pss_Anon:', 'Pss_Shmem:')))
        files = sum(len(os.listdir(f'/proc/{child}/fd')) for child, state in members.items() if state != 'Z')
    except (OSError, KeyError):
        return None
    return pss / 1024, files, len(members), sum(state == 'Z' for state in members.values())


def training(folder, steps):
    """(command, function that counts the steps done)."""
    command = ['main/train.py', '--cfg', 'nano', '--gpu', 'cpu', f'output_dir={folder}', 'train_batch_size=4',
               'num_thread=2', f'synthetic_train_size={steps * 4 // 10}', 'lixel_epochs=10', 'pose_epochs=0',
               'keep_snapshots=2']
    rows = folder / 'log' / 'metrics.jsonl'
    return command, lambda: rows.read_bytes().count(b'\n') if rows.exists() else 0


def demonstration(folder, count):
    """(command, function that counts the images done)."""
    images = folder / 'images'
    images.mkdir()
    for i in range(count):
        write_image(images / f'{i:04}.jpg', 96, 72, seed=i)
    boxes = folder / 'boxes.json'
    boxes.write_text(json.dumps({f'{i:04}.jpg': [8, 4, 56, 88] for i in range(count)}))
    command = ['main/demo.py', '--gpu', 'cpu', '--input', str(images), '--bbox_file', str(boxes),
               '--output', str(folder / 'demo')]
    return command, lambda: sum(1 for _ in (folder / 'demo').glob('*')) if (folder / 'demo').exists() else 0


def main(kind, folder, count=None, *settings):
    folder = Path(folder).resolve()
    folder.mkdir(parents=True)
    prepare, count = {'train': (training, count or 3000), 'demo': (demonstration, count or 1000)}[kind]
    command, progress = prepare(folder, int(count))
    with open(folder / 'out.txt', 'wb') as out:
        process = subprocess.Popen([sys.executable, *command, *settings], cwd=ROOT, stdout=out, stderr=out)
    rows = []
    while process.poll() is None:
        time.sleep(3)
        done, seen = progress(), look(process.pid)
        if done and seen:
            rows.append((done, *seen))
    with open(folder / 'rows.json', 'w') as file:
        json.dump(rows, file)
    return report(rows, int(count), process.returncode)


def report(rows, count, code):
    """Print medians over tenths of the run, and the verdict; the exit code."""
    print(f'{"done":>12} {"MB":>8} {"files":>6} {"processes":>10} {"zombies":>8}')
    table = []
    for tenth in range(10):
        part = [row for row in rows if tenth <= 10 * (row[0] - 1) / count < tenth + 1]
        if part:
            table.append([statistics.median(column) for column in list(zip(*part, strict=True))[1:]])
            print(f'{part[0][0]:5} ..{part[-1][0]:5} {table[-1][0]:8.1f} {table[-1][1]:6.0f} {table[-1][2]:10.0f} '
                  f'{max(row[4] for row in part):8}')
    growth = table[-1][0] / table[1][0] - 1
    files = table[-1][1] - table[1][1]
    zombies = max(row[4] for row in rows)
    print(f'exit code {code}; from the second tenth to the last: memory {growth:+.2%}, open files {files:+.0f}; '
          f'zombies at most {zombies}')
    return int(code != 0 or growth >= 0.02 or files > 0 or zombies > 0)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

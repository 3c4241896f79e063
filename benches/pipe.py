"""A benchmark program at the other end of a pipe."""

import subprocess


class Process:
    """Commands are lines of tab-separated words; each answer is a line."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words):
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"{' '.join(map(str, words))}: {answer or 'the program ended'}")
        return answer

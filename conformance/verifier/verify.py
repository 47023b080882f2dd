#!/usr/bin/env python3
"""Verifies proofs and exports of an orchestr8 log. Python's standard library only; shares no code with orchestr8.

    verify.py proof PROOF.json --key KEY
    verify.py growth GROWTH.json --heads HEADS --key KEY
    verify.py log EXPORT.jsonl --heads HEADS --key KEY

KEY is the trusted public key, as `orchestr8 audit key` prints it: name+id+base64. PROOF comes from `orchestr8 prove`, GROWTH
from `orchestr8 prove --since`, EXPORT from `orchestr8 audit export --all`, HEADS is a file of signed heads that was kept
elsewhere. Exit code 0: everything holds. 1: it does not, and the first difference is named. 2: the command line is wrong.

What is checked is described in README.md beside this file.
"""

import argparse
import base64
import hashlib
import json
import struct
import sys

sys.dont_write_bytecode = True  # The folder of the verifier stays as it is.

from ed25519 import ed25519_verify  # noqa: E402

class Failed(Exception):
    """Something does not hold."""


def sha256(data):
    return hashlib.sha256(data).digest()


# Signed notes and checkpoints (c2sp.org/signed-note, c2sp.org/tlog-checkpoint).


class Key:
    def __init__(self, text):
        self.text = text.strip()
        try:
            self.name, key_id, encoded = self.text.split("+", 2)
            data = base64.b64decode(encoded, validate=True)
        except ValueError:
            raise Failed("the key is not name+id+base64") from None
        if len(data) != 33 or data[0] != 1:
            raise Failed("the key is not an Ed25519 key")
        self.public = data[1:]
        self.id = sha256(self.name.encode() + b"\n" + data)[:4]
        if self.id.hex() != key_id:
            raise Failed("the id of the key does not match its name and bytes")

    def open(self, note):
        """The text of a note that this key has signed."""
        text, found, signatures = note.rpartition("\n\n")
        if not found:
            raise Failed("a head is not a signed note")
        text += "\n"
        if not signatures.endswith("\n"):
            raise Failed("a head does not end with its signatures")
        lines = [line.split(" ") for line in signatures[:-1].split("\n")]
        if any(len(parts) != 3 or parts[0] != "\u2014" for parts in lines):
            raise Failed("a head has a signature that cannot be read")
        names = [parts[1] for parts in lines]
        for parts in lines:
            data = base64.b64decode(parts[2], validate=True)
            if parts[1] == self.name and data[:4] == self.id:
                if ed25519_verify(self.public, text.encode(), data[4:]):
                    return text
                raise Failed("the signature of a head does not match its text")
        raise Failed("a head is signed with a foreign key: " + ", ".join(names))


class Head:
    def __init__(self, note, key):
        lines = key.open(note).splitlines()
        try:
            self.origin, self.size, self.root = lines[0], int(lines[1]), base64.b64decode(lines[2])
            extensions = dict(line.split(" ", 1) for line in lines[3:])
            self.event, self.time = extensions["event"], int(extensions["time"])
        except (ValueError, KeyError, IndexError):
            raise Failed("a head cannot be read") from None
        self.log = self.origin.rsplit("/", 1)[-1]


# Leaves and trees (RFC 6962, RFC 9162).


def encode(value):
    if value is None:
        return b"n"
    if isinstance(value, int):
        return b"i" + struct.pack(">q", value)
    if isinstance(value, str):
        data = value.encode()
        return b"t" + struct.pack(">Q", len(data)) + data
    if "real" in value:
        return b"r" + struct.pack(">d", value["real"])
    data = bytes.fromhex(value["blob"])
    return b"b" + struct.pack(">Q", len(data)) + data


def leaf_hash(log, values):
    return sha256(b"\x00" + encode(log) + b"".join(encode(value) for value in values))


def node_hash(left, right):
    return sha256(b"\x01" + left + right)


class Tree:
    """The right edge of a growing tree."""

    def __init__(self):
        self.size, self.peaks = 0, []

    def push(self, level, subtree):
        if self.size % (1 << level):
            raise Failed(f"a deleted subtree does not fit after entry {self.size}")
        self.size += 1 << level
        while self.peaks and self.peaks[-1][0] == level:
            subtree = node_hash(self.peaks.pop()[1], subtree)
            level += 1
        self.peaks.append((level, subtree))

    def root(self):
        if not self.peaks:
            return sha256(b"")
        root = self.peaks[-1][1]
        for _, left in reversed(self.peaks[:-1]):
            root = node_hash(left, root)
        return root


def root_of_path(leaf, index, size, path):
    if not 0 <= index < size:
        raise Failed("the entry is not in a log of this size")
    place, last, root = index, size - 1, leaf
    for beside in path:
        if last == 0:
            raise Failed("the path is too long")
        if place & 1 or place == last:
            root = node_hash(beside, root)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            root = node_hash(root, beside)
        place, last = place >> 1, last >> 1
    if last:
        raise Failed("the path is too short")
    return root


def grown(first, first_root, second, second_root, proof):
    """Whether a log with the second size and root has grown from one with the first (RFC 9162, 2.1.4.2)."""
    if first == 0 or first == second:
        return not proof and (first == 0 or first_root == second_root)
    hashes = list(proof) if first & (first - 1) else [first_root] + list(proof)
    if not hashes or first > second:
        return False
    place, last = first - 1, second - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    older = newer = hashes[0]
    for beside in hashes[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            older, newer = node_hash(beside, older), node_hash(beside, newer)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            newer = node_hash(newer, beside)
        place, last = place >> 1, last >> 1
    return last == 0 and older == first_root and newer == second_root


# What entries must say by themselves.


def check_audit_line(number, line, expected):
    """The line of an audit entry must have the hash that is the value of its leaf."""
    try:
        rest, entry_hash = line.rsplit(',"entry_hash":"', 1)
        rest, prev_hash = rest.rsplit(',"prev_hash":"', 1)
        rest, at_ms = rest.rsplit(',"at_ms":', 1)
        body, seq = rest.rsplit(',"seq":', 1)
    except ValueError:
        raise Failed(f"entry {number} of the log audit: its line cannot be read") from None
    body, prev_hash = body + "}", prev_hash[:-1]
    sealed = hashlib.sha256(f"{prev_hash}\n{seq}\n{at_ms}\n{body}".encode()).hexdigest()
    if sealed != expected or entry_hash != expected + '"}' or int(seq) != number:
        raise Failed(f"entry {number} of the log audit: its content does not match its hash")


def check_entry(log, entry):
    if log == "audit":
        check_audit_line(entry["number"], entry.get("line") or "", entry["values"][0])


def check_execution(proof):
    """The first entry of a journal says what the execution was started with; the entries follow each other without a gap."""
    execution, entries = proof["execution"], proof["entries"]
    numbers = [entry["values"][0] for entry in entries]
    seqs = [entry["values"][1] for entry in entries]
    if len(set(numbers)) != 1:
        raise Failed("the entries belong to more than one execution")
    if seqs != list(range(len(seqs))):
        raise Failed(f"the journal of {execution['id']} has a gap, or does not begin with its start: {seqs}")
    accepted = json.loads(entries[0]["values"][6])
    given = hashlib.sha256(execution["given"].encode()).hexdigest()
    if accepted["givenSha256"] != given:
        raise Failed(f"what execution {execution['id']} was started with was changed (seq 0)")
    for name in ("id", "tenant", "workflow"):
        if accepted[name] != execution[name]:
            raise Failed(f"the {name} of execution {execution['id']} was changed (seq 0)")
    if proof["target"] != accepted["id"]:
        raise Failed(f"the proof is of execution {accepted['id']} and not of {proof['target']}")
    return has_ended([entry["values"][3] for entry in entries], execution)


ENDS = {
    "execution-complete": "completed", "execution-failed": "failed", "execution-compensated": "compensated",
    "cancellation-complete": "cancelled", "cancellation-forced": "cancelled",
}


def has_ended(kinds, execution):
    """Whether the journal shows the end of the execution. Entries after it may be missing: nothing shows that."""
    ended = None
    for kind in kinds:
        ended = None if kind == "execution-retried" else ENDS.get(kind, ended)
    status = execution["status"]
    if status in ENDS.values() and ended != status:
        raise Failed(f"execution {execution['id']} is {status}, and its journal does not show that")
    return ended is not None


def verify_proof(path, key):
    with open(path, encoding="utf-8") as file:
        proof = json.load(file)
    if proof.get("format") != "orchestr8-proof/1":
        raise Failed("it is not a proof")
    head = Head(proof["head"], key)
    if head.log != proof["log"]:
        raise Failed("the head is of another log")
    if proof.get("key", key.text) != key.text:
        raise Failed("the proof names another key than the trusted one")
    if not proof["entries"]:
        raise Failed("it proves nothing")
    for entry in proof["entries"]:
        leaf = leaf_hash(proof["log"], entry["values"])
        path = [bytes.fromhex(beside) for beside in entry["path"]]
        if root_of_path(leaf, entry["number"] - 1, head.size, path) != head.root:
            raise Failed(f"entry {entry['number']} of the log {proof['log']} is not the entry that was signed")
        check_entry(proof["log"], entry)
    found = f"ok: {len(proof['entries'])} entries of the log {proof['log']} are in the head of size {head.size}"
    if proof["log"] == "journal":
        return found if check_execution(proof) else found + "; the execution is not shown to be complete"
    numbers = [str(entry["number"]) for entry in proof["entries"]]
    if numbers != [proof["target"]]:
        raise Failed(f"the proof is of entry {', '.join(numbers)} and not of {proof['target']}")
    return found


# Whole logs.


def read_heads(path, key):
    """The heads of a file; an accepted one makes those before it void."""
    heads = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                notes = json.loads(line)["heads"]
            except (ValueError, KeyError):
                continue  # A line that a crash cut off.
            opened = [Head(note, key) for note in notes]
            for head in opened:
                if head.event == "accepted":
                    heads[head.log] = []
                heads.setdefault(head.log, []).append(head)
    if not heads:
        raise Failed("there is no head to compare with")
    return {log: sorted(found, key=lambda head: head.size) for log, found in heads.items()}


def verify_growth(path, heads_path, key):
    """That the log of a newer head has grown from that of a head which was kept elsewhere."""
    with open(path, encoding="utf-8") as file:
        proof = json.load(file)
    if proof.get("format") != "orchestr8-consistency/1":
        raise Failed("it is not a proof of growth")
    newer, log, size = Head(proof["head"], key), proof["log"], proof["from"]
    if newer.log != log:
        raise Failed("the head is of another log")
    older = [head for head in read_heads(heads_path, key).get(log, []) if head.size == size]
    if not older:
        raise Failed(f"no head of the log {log} with the size {size} was kept")
    hashes = [bytes.fromhex(beside) for beside in proof["hashes"]]
    for head in older:
        if head.origin != newer.origin:
            raise Failed("the heads are of different data files")
        if not grown(head.size, head.root, newer.size, newer.root, hashes):
            raise Failed(f"the log {log} of size {newer.size} has not grown from the signed head of size {size}")
    return f"ok: the log {log} has grown from {size} to {newer.size} entries"


class LogCheck:
    def __init__(self, log, heads):
        self.log, self.heads, self.tree, self.agreed = log, heads, Tree(), 0
        self.good, self.pruned, self.note = 0, [], None

    def take(self, entry):
        number = entry["number"]
        if number != self.tree.size + 1:
            what = "is missing" if number > self.tree.size + 1 else "was put in or is out of order"
            raise Failed(f"entry {min(number, self.tree.size + 1)} of the log {self.log} {what}")
        if "subtree" in entry:
            self.pruned.append((number - 1, entry["level"], entry["subtree"]))
            self.tree.push(entry["level"], bytes.fromhex(entry["subtree"]))
        else:
            check_entry(self.log, entry)
            self.tree.push(0, leaf_hash(self.log, entry["values"]))
        while self.heads and self.heads[0].size <= self.tree.size:
            head = self.heads.pop(0)
            if head.size < self.tree.size:
                continue  # Inside a deleted subtree; a later head covers it.
            if head.root != self.tree.root():
                first, last = self.good + 1, head.size
                raise Failed(f"an entry from {first} to {last} of the log {self.log} is not what was signed")
            self.agreed, self.good = self.agreed + 1, head.size

    def finish(self, key):
        while self.heads and self.heads[0].size == 0:
            self.heads.pop(0)
        if self.heads:
            newest = self.heads[-1].size
            raise Failed(f"entry {self.tree.size + 1} of the log {self.log} is missing: a signed head covers {newest}")
        if self.pruned and self.agreed:
            lines = "".join(f"{start} {level} {subtree}\n" for start, level, subtree in self.pruned)
            text = key.open(self.note or "")
            if text.splitlines()[1] != hashlib.sha256(lines.encode()).hexdigest():
                raise Failed(f"entries of the log {self.log} were deleted, and the server has not signed that")


def verify_log(path, heads_path, key):
    heads = read_heads(heads_path, key)
    checks = {log: LogCheck(log, list(found)) for log, found in heads.items()}
    with open(path, encoding="utf-8") as file:
        first = json.loads(file.readline())
        if first.get("format") != "orchestr8-log/1":
            raise Failed("it is not an export of a log")
        for line in file:
            entry = json.loads(line)
            check = checks.setdefault(entry["log"], LogCheck(entry["log"], []))
            if "prunedNote" in entry:
                check.note = entry["prunedNote"]
            else:
                check.take(entry)
    for check in checks.values():
        check.finish(key)
    logs = ", ".join(f"{check.log} with {check.tree.size} entries" for check in checks.values())
    return f"ok: {logs}; {sum(check.agreed for check in checks.values())} heads agree"


def main():
    parser = argparse.ArgumentParser(description="Verifies proofs and exports of an orchestr8 log.")
    commands = parser.add_subparsers(dest="command", required=True)
    proof = commands.add_parser("proof", help="verify what `orchestr8 prove` wrote")
    growth = commands.add_parser("growth", help="verify what `orchestr8 prove --since` wrote")
    log = commands.add_parser("log", help="verify what `orchestr8 audit export --all` wrote")
    for command in (proof, growth, log):
        command.add_argument("file")
        command.add_argument("--key", required=True, help="the trusted public key")
    for command in (growth, log):
        command.add_argument("--heads", required=True, help="signed heads that were kept elsewhere")
    given = parser.parse_args()
    try:
        key = Key(given.key)
        if given.command == "proof":
            print(verify_proof(given.file, key))
        else:
            print({"growth": verify_growth, "log": verify_log}[given.command](given.file, given.heads, key))
        return 0
    except Failed as failed:
        print(f"FAIL: {failed}")
    except (ValueError, KeyError, TypeError, IndexError) as error:
        print(f"FAIL: it cannot be read: {error!r}")
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""Which link hangs on which: the joints of a URDF file as a forest, or an error that says why they are none."""

from __future__ import annotations

from difflib import get_close_matches

from kfdyn.errors import TreeError
from kfdyn.io.urdf_elements import Joint, Urdf


def outward(urdf: Urdf, source: str) -> tuple[list[str], list[Joint]]:
    """Return the root links, and the joints outward, depth first, in the file's order; O(links + joints)."""
    above: dict[str, Joint] = {}
    below: dict[str, list[Joint]] = {name: [] for name in urdf.links}
    for joint in urdf.joints.values():
        for which, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in urdf.links:
                raise _unknown(source, joint, f"its {which} link is", link, list(urdf.links))
        if joint.child in above:
            other = above[joint.child]
            raise TreeError(
                f"{source}:{joint.line}: link {joint.child!r} is the child of joint {joint.name!r} and of joint "
                f"{other.name!r} in line {other.line}; a tree has one: cut the loop at one of them"
            )
        above[joint.child] = joint
        below[joint.parent].append(joint)
    roots = [name for name in urdf.links if name not in above]
    order: list[Joint] = []
    stack = [joint for root in reversed(roots) for joint in reversed(below[root])]
    while stack:
        joint = stack.pop()
        order.append(joint)
        stack.extend(reversed(below[joint.child]))
    if len(order) < len(urdf.joints):
        raise TreeError(_loop(source, above, {joint.name for joint in order}))
    return roots, order


def _loop(source: str, above: dict[str, Joint], reached: set[str]) -> str:
    """Walk inboard from a joint that no root reaches until a link repeats."""
    joint = next(joint for joint in above.values() if joint.name not in reached)
    seen: dict[str, None] = {}
    while joint.child not in seen:
        seen[joint.child] = None
        joint = above[joint.parent]
    names = list(seen)
    names = names[names.index(joint.child) :]
    path = " -> ".join([*names[:8], *(["..."] if len(names) > 8 else []), names[0]])
    return f"{source}:{joint.line}: the parents go in a loop: {path}; give one of these links another parent"


def _unknown(source: str, joint: Joint, what: str, name: str, known: list[str]) -> TreeError:
    close = get_close_matches(name, known[:1000], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "; add it, or correct the name"
    return TreeError(
        f"{source}:{joint.line}: joint {joint.name!r}: {what} {name[:100]!r}, which is not in the file{hint}"
    )

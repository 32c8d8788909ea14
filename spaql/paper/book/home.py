"""The home page: a pole that the smallest tree holds."""

import html
import json
from typing import Any

from spaql.paper.labels import number


def smallest_policy(data: dict[str, Any], system: str) -> dict[str, Any]:
    """Return the smallest tree of a system in the explorer's data, with the data of the system."""
    trees = [p for p in data["policies"] if p["system"] == system and "leaves" in p]
    policy = min(trees, key=lambda p: p["leaves"])
    return {name: policy[name] for name in ("feature", "threshold", "left", "right", "action", "leaves")} | {
        "system": data["systems"][system]
    }


def leaf_rules(policy: dict[str, Any]) -> list[str]:
    """Return one rule per leaf in the order of its actions: the questions on the way to it, and what it does."""
    system, rules = policy["system"], {}

    def walk(node: int, asked: list[str]) -> None:
        feature = policy["feature"][node]
        if feature < 0:
            row = policy["left"][node]
            force = system["choices"][policy["action"][row]]
            rules[row] = f"{' and '.join(asked)}: push {'right' if force > 0 else 'left'}"
            return
        name, unit = system["observed"][feature], system["units"][feature]
        threshold = f"{number(policy['threshold'][node], 2)} {unit}"
        walk(policy["left"][node], [*asked, f"{name} < {threshold}"])
        walk(policy["right"][node], [*asked, f"{name} ≥ {threshold}"])

    walk(0, [])
    return [rules[row] for row in sorted(rules)]


def hero(policy: dict[str, Any], lasts: str) -> str:
    """Return the moving picture of the home page: a pole under a tree, its rules beside it, and how long it lasts."""
    rules = "".join(f"<li>{html.escape(rule)}</li>" for rule in leaf_rules(policy))
    data = html.escape(json.dumps(policy, ensure_ascii=False), quote=True)
    return (
        "```{raw} html\n"
        f'<div class="hero" id="spaql-hero" data-policy="{data}">'
        '<canvas width="640" height="300" role="img" '
        'aria-label="A cart that keeps a pole upright under the rules beside it"></canvas>'
        f"<div><p>A whole policy in {policy['leaves']} rules (θ is the pole's lean to the right). A search found it, "
        'starting from a policy of SPAQL-TS. It is no feat: <a href="../notebooks/07_policies.html">random trees of '
        f"this size</a> hold the pole for the task's 200 steps too, and after {lasts} (the median) this one drops "
        "it.</p>"
        f"<ul>{rules}</ul>"
        '<p><button type="button" data-push="-1">← push the pole</button> '
        '<button type="button" data-push="1">push the pole →</button> '
        '<button type="button" data-play>pause</button></p></div></div>\n'
        '<script src="../_static/systems/cartpole.js"></script>\n<script src="../_static/explorer.js"></script>\n'
        '<script src="../_static/hero.js"></script>\n```\n'
    )

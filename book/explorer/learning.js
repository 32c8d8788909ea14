"use strict";
// AQL, SPAQL and SPAQL-TS in the browser: spaql/partition.py, updates.py and loop.py under the text's rules, with the
// same draws in the same order.  The physics are those of systems/.

const spaqlLearning = (() => {
  const BITS = 31; // of a coordinate, which say in which half of its cell it is

  // -------------------------------------------------------------------------------------------------------------------
  // The partition: balls of states and actions, each on the cell of states that is its shadow

  const newCell = (parent) => ({ parent, depth: parent ? parent.depth + 1 : 0, children: null, balls: [], own: null,
    best: parent ? parent.best : null });

  function newPartition(roots, q, actions) {
    const trees = Array.from({ length: roots }, () => {
      const cell = newCell(null);
      const ball = { q, rank: 0, visits: 0, cell, low: actions[0], high: actions[1] };
      cell.balls.push(ball);
      cell.own = cell.best = ball;
      return cell;
    });
    return { roots: trees, arms: roots, splits: 0 };
  }

  function copy(partition) {
    const twins = new Map([[null, null]]);
    const copyCell = (cell, parent) => {
      const made = { ...cell, parent };
      made.balls = cell.balls.map((ball) => {
        const twin = { ...ball, cell: made };
        twins.set(ball, twin);
        return twin;
      });
      made.own = twins.get(cell.own);
      made.best = twins.get(cell.best); // on this cell or on one above
      made.children = cell.children?.map((child) => copyCell(child, made)) ?? null;
      return made;
    };
    return { ...partition, roots: partition.roots.map((root) => copyCell(root, null)) };
  }

  const digits = (x) => Math.min(Math.floor(x * 2 ** BITS) + 2 ** BITS, 2 ** (BITS + 1) - 1);

  // The leaf cell that holds a state; a point on a border belongs to the upper half.
  function locate(root, x) {
    let cell = root;
    const places = x.map(digits);
    for (let shift = BITS; cell.children; shift -= 1) {
      let half = 0;
      places.forEach((place, i) => { half |= (Math.floor(place / 2 ** shift) % 2) << i; });
      cell = cell.children[half];
    }
    return cell;
  }

  function winner(ball, other) {
    if (!ball || !other) return ball ?? other;
    return other.q > ball.q || (other.q === ball.q && other.rank > ball.rank) ? other : ball;
  }

  // Find the best balls of a cell and of those below it again.
  function project(cell, changed) {
    cell.own = cell.balls.reduce(winner, null);
    cell.best = winner(cell.parent?.best ?? null, cell.own);
    projectBelow(cell, changed);
  }

  function projectBelow(cell, changed) {
    for (const child of cell.children ?? []) {
      const best = winner(cell.best, child.own);
      const deeper = best !== child.best || best === changed;
      child.best = best;
      if (deeper) projectBelow(child, changed);
    }
  }

  function update(ball, q) {
    const { own } = ball.cell;
    ball.q = q;
    if (ball === own || winner(own, ball) !== own) project(ball.cell, ball);
  }

  // Cover a ball with balls of half its radius, which inherit its estimate and its visits.
  function split(partition, ball, discrete, dimensions, random) {
    const { cell, low, high } = ball;
    cell.balls.splice(cell.balls.indexOf(ball), 1);
    cell.children ??= Array.from({ length: 2 ** dimensions }, () => newCell(cell));
    const parts = discrete && high - low === 1 ? 1 : 2;
    const middle = discrete ? low + Math.floor((high - low) / 2) : (low + high) / 2;
    for (const child of cell.children) {
      for (let part = 0; part < parts; part += 1) {
        const upper = discrete ? part === 1 : part === 0;
        const made = { q: ball.q, rank: random(), visits: ball.visits, cell: child,
          low: parts > 1 && upper ? middle : low, high: parts === 1 || upper ? high : middle };
        child.balls.unshift(made);
        child.own = winner(child.own, made);
      }
    }
    partition.arms += cell.children.length * parts - 1;
    partition.splits += 1;
    project(cell, ball);
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The equations

  function boltzmann(leaf, tau, random) {
    const highest = leaf.best.q;
    let preferred = highest;
    if (highest < 0) for (let cell = leaf; cell; cell = cell.parent) {
      for (const ball of cell.balls) preferred = Math.min(preferred, ball.q);
    }
    const factor = 1 / ((highest || 1) * tau);
    let chosen = leaf.best;
    let total = 0;
    for (let cell = leaf; cell; cell = cell.parent) {
      for (const ball of cell.balls) {
        const weight = Math.exp((ball.q - preferred) * factor);
        total += weight;
        if (weight === total || random() * total < weight) chosen = ball;
      }
    }
    return chosen;
  }

  // -------------------------------------------------------------------------------------------------------------------
  // An agent.  `system` has what explorer.py says of it; `random` gives uniform numbers, `start` states.

  function newAgent(system, algorithm, { xi, N, deleted = false }, random, start) {
    const physics = SPAQL_SYSTEMS[system.family];
    const H = system.steps;
    const many = algorithm === "AQL";
    const discrete = system.choices.length > 0;
    const dimensions = system.bounds.length;
    const first = newPartition(many ? H : 1, H, discrete ? [0, system.choices.length] : [-1, 1]);
    const agent = { algorithm, trainee: first, best: first, tau: 0.01, u: 2, reward: null, iteration: many ? 0 : -1,
      episode: many ? 0 : 1, total: 0, history: [], settings: { xi, N, deleted } };

    const standard = (observation) => observation.map((value, i) => {
      const ends = system.bounds[i];
      const x = ends ? (value - (ends[0] + ends[1]) / 2) / ((ends[1] - ends[0]) / 2)
        : 2 / (1 + Math.exp(Math.min(709, -2 * system.slopes[i] * value))) - 1;
      return Math.min(1, Math.max(-1, x));
    });
    const [lowest, highest] = system.action.ends;
    const physical = (action) => (discrete ? action
      : Math.fround((lowest + highest) / 2 + ((highest - lowest) / 2) * action));
    const draw = ({ low, high }) => {
      if (!discrete) return low + (high - low) * random();
      return high - low > 1 ? Math.floor(low + (high - low) * random()) : low;
    };
    agent.locate = (state, h = 0) => locate(agent.best.roots[many ? h : 0], standard(physics.observe(state)));
    const bestBall = (partition, h, x) => locate(partition.roots[many ? h : 0], x).best;

    function value(h, x, y) {
      if (many && h + 1 === H) return 0;
      const v = Math.min(H, bestBall(agent.trainee, h + 1, y).q);
      if (algorithm !== "SPAQL-TS") return v;
      const distance = Math.max(...x.map((coordinate, i) => Math.abs(coordinate - system.reference[i])));
      const ratio = distance / system.lam;
      return v * Math.exp(-(ratio * ratio));
    }

    function learnFrom(h, ball, x, y, reward) {
      ball.visits += 1;
      const alpha = (H + 1) / (H + ball.visits);
      const target = (agent.settings.deleted ? 0 : reward) + value(h, x, y)
        + agent.settings.xi / Math.sqrt(ball.visits);
      update(ball, (1 - alpha) * ball.q + alpha * target);
      return ball.visits >= 4 ** ball.cell.depth;
    }

    function train() {
      let state = start();
      let x = standard(physics.observe(state));
      for (let h = 0; h < H; h += 1) {
        const ball = many ? bestBall(agent.trainee, h, x) : boltzmann(locate(agent.trainee.roots[0], x), agent.tau, random);
        const next = physics.step(system.constants, state, physical(draw(ball)));
        const y = standard(physics.observe(next.state));
        if (learnFrom(h, ball, x, y, next.reward)) split(agent.trainee, ball, discrete, dimensions, random);
        [state, x] = [next.state, y];
        if (next.over) break;
      }
    }

    function rollout() {
      let state = start();
      let total = 0;
      for (let h = 0; h < H; h += 1) {
        const ball = bestBall(agent.trainee, h, standard(physics.observe(state)));
        const next = physics.step(system.constants, state, physical(draw(ball)));
        total += next.reward;
        state = next.state;
        if (next.over) break;
      }
      return total;
    }

    // Keep the better agent, adapt the temperature, return to the best.
    function conclude() {
      const mean = agent.total / N;
      if (many) {
        agent.best = agent.trainee;
        agent.reward = mean;
      } else if (agent.iteration < 0 || mean >= agent.reward) {
        agent.best = copy(agent.trainee);
        agent.reward = mean;
        agent.tau = 0.01;
        if (agent.iteration >= 0) agent.u **= 0.8;
      } else {
        agent.tau *= agent.u;
        if (agent.trainee.splits - agent.best.splits > 2) {
          agent.tau = 0.01;
          agent.trainee = copy(agent.best);
        }
      }
      if (agent.iteration >= 0) agent.history.push({ reward: agent.reward, mean, arms: agent.best.arms });
      agent.iteration += 1;
      agent.episode = 0;
      agent.total = 0;
    }

    // Play one episode: of training, or one of the N rollouts after it.
    agent.advance = () => {
      if (agent.episode === 0) train();
      else agent.total += rollout();
      agent.episode += 1;
      if (agent.episode > N) conclude();
    };

    // What the greedy policy does in the middle of the best ball, in the action's unit.
    agent.central = ({ low, high }) => {
      const middle = (low + high) / 2;
      return discrete ? system.choices[Math.floor(middle)] : physical(middle);
    };
    return agent;
  }

  return { newAgent };
})();

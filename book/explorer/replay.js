"use strict";
// SPAQL-R in the browser, with its defaults: spaql/bisection.py, tiles.py and replay.py, with the same draws in the same order.
// The physics are those of systems/.

const spaqlReplay = (() => {
  const NARROWEST = 2 ** -20; // a cell must be wider than this share of all states seen for it to be cut
  const [GOES_ON, CUT_OFF, TERMINAL] = [0, 1, 2]; // how an episode stands after a transition

  // -------------------------------------------------------------------------------------------------------------------
  // Cells of states: a binary tree whose leaves hold an advantage of each action

  const newCell = (depth, q, visits) => ({ depth, q, visits, best: firstBest(q), halves: null, axis: 0, border: 0 });

  // The leaf that holds a state, looked for below a cell that holds it; a state on a border belongs to the upper half.
  function leafBelow(cell, x) {
    let found = cell;
    while (found.halves) found = found.halves[x[found.axis] >= found.border ? 1 : 0];
    return found;
  }

  function firstBest(q) {
    let best = 0;
    for (let a = 1; a < q.length; a += 1) if (q[a] > q[best]) best = a;
    return best;
  }

  // Halve a leaf; both halves inherit its estimates and its visits.
  function cut(cell, across, border) {
    cell.axis = across;
    cell.border = border;
    cell.halves = [0, 1].map(() => newCell(cell.depth + 1, [...cell.q], [...cell.visits]));
  }

  // The tiles that hold a state, one in each of several grids that are shifted against each other.
  const tilesOf = ({ tilings, bins, places, numbers }, x) => Array.from({ length: tilings }, (_, tiling) =>
    places.reduce((number, [place, kind], i) => {
      const shift = (((2 * i + 1) * tiling) % tilings) / tilings;
      const tile = Math.floor(((x[place] + 1) / 2) * bins + shift);
      return (number * (bins + 1) + (kind === -1 ? Math.min(tile, bins) : tile % bins)) % numbers; // an angle turns round
    }, tiling));

  // -------------------------------------------------------------------------------------------------------------------
  // An agent.  `system` has what explorer.py says of it; `random` gives uniform numbers, `start` states.

  function newAgent(system, { N, deleted = false }, random, start) {
    const physics = SPAQL_SYSTEMS[system.family];
    const { gamma, alpha, beta, epsilon, decay, replays, visits, steps, reach, tiles, memory: size, actions, sine, bounds,
      slopes } = system.replay;
    const H = system.steps;
    const seen = [sine.map(() => Infinity), sine.map(() => -Infinity)]; // corners of the box of all states seen so far
    const root = newCell(0, actions.map(() => 0), actions.map(() => 0));
    const values = new Float64Array(tiles.numbers); // weights of the tiles: of the value, and of each action's advantage
    const advantages = actions.map(() => new Float64Array(tiles.numbers));
    const sumOf = (weights, found) => found.reduce((total, tile) => total + weights[tile], 0);
    const estimate = (found, a) => sumOf(values, found) + sumOf(advantages[a], found);
    const memory = [];
    const met = [0, 0]; // the lowest and the highest reward so far, and zero
    const agent = { algorithm: "SPAQL-R", best: { arms: actions.length }, iteration: 0, episode: 0, total: 0, history: [] };
    let taken = 0;

    function standard(observation) {
      return observation.map((value, i) => {
        if (sine[i] === -2) return 0;
        const seenAs = sine[i] >= 0 ? Math.atan2(observation[sine[i]], value) : value;
        const ends = bounds[i];
        const x = ends ? (seenAs - (ends[0] + ends[1]) / 2) / ((ends[1] - ends[0]) / 2)
          : 2 / (1 + Math.exp(Math.min(709, -2 * slopes[i] * seenAs))) - 1;
        return Math.min(1, Math.max(-1, x));
      });
    }

    const leaf = (x) => leafBelow(root, x);
    agent.locate = (state) => leaf(standard(physics.observe(state)));

    // Corners of the leaf that holds a state, as far as states were seen.
    function boxAround(x) {
      const box = seen.map((corner) => [...corner]);
      for (let cell = root; cell.halves; cell = cell.halves[x[cell.axis] >= cell.border ? 1 : 0]) {
        box[x[cell.axis] >= cell.border ? 0 : 1][cell.axis] = cell.border;
      }
      return box;
    }

    // Count a visit to a leaf, which is halved across its widest side when it has had enough.
    function countVisit(cell, x, a) {
      cell.visits[a] += 1;
      x.forEach((value, i) => {
        seen[0][i] = Math.min(seen[0][i], value);
        seen[1][i] = Math.max(seen[1][i], value);
      });
      if (cell.visits.reduce((sum, count) => sum + count, 0) < visits * (cell.depth + 1)) return;
      const box = boxAround(x);
      let [across, share] = [-1, NARROWEST];
      x.forEach((_, i) => {
        const [width, whole] = [box[1][i] - box[0][i], seen[1][i] - seen[0][i]];
        if (width > share * whole) [across, share] = [i, width / whole];
      });
      if (across < 0) return;
      cut(cell, across, (box[0][across] + box[1][across]) / 2);
      agent.best.arms += actions.length;
    }

    // Learn from the newest transition, and from some drawn from the memory.
    function learnAgain() {
      const newest = (taken - 1) % size;
      const kept = Math.min(taken, size);
      const [lowest, highest] = met.map((reward) => reach * reward);
      for (let n = 0; n <= replays; n += 1) {
        const at = n === 0 ? newest : Math.floor(random() * kept);
        const from = memory[at];
        const cell = from.cell = leafBelow(from.cell, from.x);
        let [last, total, discount] = [at, from.reward, gamma];
        for (let m = 1; m < steps && last !== newest && memory[last].end === GOES_ON; m += 1) {
          const following = last + 1 < size ? last + 1 : 0;
          const then = memory[following];
          then.cell = leafBelow(then.cell, then.x);
          if (then.action !== then.cell.best) break;
          last = following;
          total += discount * then.reward;
          discount *= gamma;
        }
        const end = memory[last];
        if (end.end !== TERMINAL) {
          end.next = leafBelow(end.next, end.y);
          const value = estimate(end.tilesY, end.next.best);
          total += discount * Math.min(highest, Math.max(lowest, value));
        }
        const delta = total - estimate(from.tilesX, from.action);
        from.tilesX.forEach((tile) => {
          values[tile] += (alpha / tiles.tilings) * delta;
          advantages[from.action][tile] += ((beta * alpha) / tiles.tilings) * delta;
        });
        advantages.forEach((weights, b) => { cell.q[b] += alpha * (sumOf(weights, from.tilesX) - cell.q[b]); });
        cell.best = firstBest(cell.q);
      }
    }

    function train() {
      let state = start();
      let x = standard(physics.observe(state));
      let end = GOES_ON;
      for (let h = 1; end === GOES_ON; h += 1) {
        const cell = leaf(x);
        const share = Math.max(epsilon, Math.exp(-taken / decay)); // of random actions
        const a = random() < share ? Math.floor(random() * actions.length) : cell.best;
        const result = physics.step(system.constants, state, actions[a]);
        const y = standard(physics.observe(result.state));
        const reward = deleted ? 0 : result.reward;
        if (result.over) end = TERMINAL;
        else if (h === H) end = CUT_OFF;
        memory[taken % size] = { x, y, action: a, reward, end, cell, next: root, tilesX: tilesOf(tiles, x),
          tilesY: tilesOf(tiles, y) };
        taken += 1;
        met[0] = Math.min(met[0], reward);
        met[1] = Math.max(met[1], reward);
        countVisit(cell, x, a);
        learnAgain();
        [state, x] = [result.state, y];
      }
    }

    function rollout() {
      let state = start();
      let total = 0;
      for (let h = 0; h < H; h += 1) {
        const result = physics.step(system.constants, state, actions[agent.locate(state).best]);
        total += result.reward;
        state = result.state;
        if (result.over) break;
      }
      return total;
    }

    // Play one episode: of training, or one of the N rollouts after it, which only report.
    agent.advance = () => {
      if (agent.episode === 0) train();
      else agent.total += rollout();
      agent.episode += 1;
      if (agent.episode <= N) return;
      const mean = agent.total / N;
      agent.history.push({ reward: mean, mean, arms: agent.best.arms });
      agent.iteration += 1;
      agent.episode = agent.total = 0;
    };

    // What the greedy policy does in a cell, in the action's unit.
    agent.central = (best) => (system.choices.length ? system.choices[actions[best]] : actions[best]);
    return agent;
  }

  return { newAgent };
})();

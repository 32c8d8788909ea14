"use strict";
// The policy explorer: maps of policies, and the systems simulated under them.  It needs SPAQL_POLICIES (policies.js,
// written by spaql.paper.book.explorer.write_policies), SPAQL_SYSTEMS (the files of systems/) and an element with the id
// "spaql-explorer"; nothing is loaded from anywhere.

const spaqlExplorer = (() => {
  // -------------------------------------------------------------------------------------------------------------------
  // The systems.  Each has a file of its own with its physics and its drawing; all else is in the data.

  const known = (system) => SPAQL_SYSTEMS[system.family];
  const observe = (system, state) => known(system).observe(state);

  // Apply an action (a number of the list of actions, or a value); return the next state, the reward and the end.
  const step = (system, state, action) => known(system).step(system.constants, state, action);

  // -------------------------------------------------------------------------------------------------------------------
  // The policies: exact trees.  In a leaf, `left` is the number of its row.

  function find(policy, observation) {
    let node = 0;
    while (policy.feature[node] >= 0) {
      const below = observation[policy.feature[node]] < policy.threshold[node];
      node = below ? policy.left[node] : policy.right[node];
    }
    return policy.left[node];
  }

  const act = (policy, observation) => policy.action[find(policy, observation)];

  // The bounds of the cell that holds an observation, [lowest, highest] for each variable.
  function cellBounds(system, policy, observation) {
    const bounds = system.bounds.map((ends) => (ends ? [...ends] : [-Infinity, Infinity]));
    let node = 0;
    while (policy.feature[node] >= 0) {
      const variable = policy.feature[node];
      const below = observation[variable] < policy.threshold[node];
      bounds[variable][below ? 1 : 0] = policy.threshold[node];
      node = below ? policy.left[node] : policy.right[node];
    }
    return bounds;
  }

  // An episode from a state; with `actions` these are applied, otherwise the policy's.
  function episode(system, policy, start, actions) {
    const states = [start];
    const taken = [];
    let total = 0;
    let over = false;
    while (!over && taken.length < system.steps && (!actions || taken.length < actions.length)) {
      const here = states[states.length - 1];
      const action = actions ? actions[taken.length] : act(policy, observe(system, here));
      const result = step(system, here, action);
      taken.push(action);
      states.push(result.state);
      total += result.reward;
      over = result.over;
    }
    return { states, actions: taken, total, over };
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Words and colours

  // Cividis: from dark blue to yellow, ever lighter, so that grey shows the same order.
  const STOPS = [[0, 34, 78], [66, 78, 108], [125, 124, 120], [186, 173, 108], [254, 232, 56]];

  // Of actions with both signs: blue, a neutral zero, orange.
  const SIGNED = [[11, 60, 125], [127, 178, 229], [244, 244, 244], [253, 184, 99], [230, 97, 1]];

  function colour(share, stops) {
    const place = Math.min(1, Math.max(0, share)) * (stops.length - 1);
    const below = Math.min(stops.length - 2, Math.floor(place));
    return stops[below].map((part, i) => Math.round(part + (place - below) * (stops[below + 1][i] - part)));
  }

  function number(value, decimals = 2) {
    if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
    const text = value.toFixed(decimals);
    return Number(text) === 0 ? (0).toFixed(decimals) : text.replace("-", "−");
  }

  // A value of a state variable, with as many digits as its range calls for.
  const inState = ({ ends, unit }, value) => withUnit(number(value, ends[1] - ends[0] < 0.2 ? 3 : 2), unit);

  const withUnit = (text, unit) => (unit ? `${text} ${unit}` : text);
  const physical = (system, action) => (system.choices.length ? system.choices[action] : action);

  function actionInWords(system, policy, row) {
    const signed = (action) => {
      const value = physical(system, action);
      return (value > 0 ? "+" : "") + number(value, system.choices.length ? 0 : 2);
    };
    let words = withUnit(signed(policy.action[row]), system.action_unit);
    const told = known(system).words?.(physical(system, policy.action[row]));
    if (told) words = `${told}, ${words}`;
    if (policy.low[row] !== policy.high[row]) {
      words += ` (the middle of ${signed(policy.low[row])} to ${signed(policy.high[row])})`;
    }
    return words;
  }

  // What colours show: a share between 0 and 1 for each row, and the words at the two ends.
  function shading(system, policy, what) {
    if (what === "action") {
      const [low, high] = system.action_range;
      const ends = [low, high].map((end) => withUnit(number(end, 0), system.action_unit));
      const stops = low < 0 && high > 0 ? SIGNED : STOPS;
      return { shares: policy.action.map((a) => (physical(system, a) - low) / (high - low)), ends, stops };
    }
    const values = what === "visits" ? policy.visits.map((v) => Math.log(Math.max(1, v))) : policy.q;
    const low = Math.min(...values);
    const high = Math.max(...values);
    const raw = policy[what];
    const ends = [Math.min(...raw), Math.max(...raw)].map((end) => number(end, what === "q" ? 1 : 0));
    return { shares: values.map((v) => (high > low ? (v - low) / (high - low) : 0.5)), ends, stops: STOPS };
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The page

  const STYLE = `
    .spaql { --ink: #1b1b1b; --soft: #eef0f3; --line: #8a8f98; --mark: #b3261e;
      color: var(--ink); font: 16px/1.45 system-ui, sans-serif; }
    @media (prefers-color-scheme: dark) { html:not([data-theme="light"]) .spaql {
      --ink: #ececec; --soft: #262a31; --line: #8a8f98; --mark: #ff8a80; } }
    html[data-theme="dark"] .spaql {
      --ink: #ececec; --soft: #262a31; --line: #8a8f98; --mark: #ff8a80; }
    .spaql * { box-sizing: border-box; }
    .spaql .spaql-row { display: flex; flex-wrap: wrap; gap: 0.6rem 1rem; margin: 0.5rem 0; align-items: end; }
    .spaql label { display: flex; flex-direction: column; font-size: 0.9rem; min-width: 8rem; flex: 1 1 8rem; }
    .spaql select, .spaql button { font: inherit; color: var(--ink); background: var(--soft); min-height: 2.75rem;
      border: 1px solid var(--line); border-radius: 0.4rem; padding: 0.3rem 0.7rem; max-width: 100%; }
    .spaql input[type=range] { width: 100%; min-height: 2.2rem; }
    .spaql button { min-width: 5.5rem; cursor: pointer; }
    .spaql .two { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); }
    .spaql canvas { width: 100%; display: block; border: 1px solid var(--line); border-radius: 0.3rem; }
    .spaql canvas.map { touch-action: pan-y; cursor: crosshair; }
    .spaql .spaql-axes { display: grid; grid-template-columns: auto 1fr; gap: 0.2rem 0.4rem; font-size: 0.85rem; }
    .spaql .spaql-axes > div { display: flex; justify-content: space-between; font-variant-numeric: tabular-nums; }
    .spaql .spaql-axes > div.up { flex-direction: column; text-align: right; }
    .spaql canvas.strip { margin-top: 0.4rem; }
    .spaql .spaql-buttons { display: flex; gap: 0.4rem; margin: 0.5rem 0; align-items: stretch; }
    .spaql .spaql-buttons button, .spaql .spaql-buttons select { flex: 1 1 auto; min-width: 0;
      padding: 0.3rem; font-size: 0.85rem; white-space: nowrap; }
    .spaql :focus-visible { outline: 3px solid #2f7de1; outline-offset: 2px; }
    .spaql table { border-collapse: collapse; width: 100%; margin: 0.4rem 0; font-variant-numeric: tabular-nums; }
    .spaql th, .spaql td { text-align: left; padding: 0.15rem 0.6rem 0.15rem 0; border-bottom: 1px solid var(--soft);
      font-weight: normal; background: none; color: inherit; vertical-align: top; }
    .spaql th { white-space: nowrap; }
    .spaql pre { overflow: auto; max-height: 24rem; padding: 0.6rem; background: var(--soft); color: var(--ink);
      font-size: 0.85rem; line-height: 1.35; border: none; }
    .spaql .key { display: flex; align-items: center; gap: 0.5rem; font-size: 0.9rem; margin: 0.3rem 0; }
    .spaql .key span.bar { flex: 1; height: 0.8rem; border: 1px solid var(--line); }
    .spaql .score { font-size: 1.15rem; font-variant-numeric: tabular-nums; margin: 0.4rem 0; }
    .spaql p.help { font-size: 0.9rem; margin: 0.3rem 0; }
    .spaql summary { cursor: pointer; min-height: 2.2rem; }
  `;

  function element(parent, tag, attributes = {}, text = "") {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text) made.textContent = text;
    parent.append(made);
    return made;
  }

  function choice(parent, text) {
    return element(element(parent, "label", {}, text), "select");
  }

  function fill(select, entries, chosen) {
    select.replaceChildren();
    for (const [value, text] of entries) element(select, "option", { value }, text);
    if (entries.some(([value]) => String(value) === String(chosen))) select.value = chosen;
  }

  function build(place, data) {
    place.replaceChildren();
    place.classList.add("spaql");
    element(place, "style", {}, STYLE);
    const top = element(place, "div", { class: "spaql-row" });
    const systemChoice = choice(top, "System");
    const policyChoice = choice(top, "Algorithm");
    const axes = element(place, "div", { class: "spaql-row" });
    const acrossChoice = choice(axes, "Across");
    const upChoice = choice(axes, "Up");
    const whatChoice = choice(axes, "Colour");
    const sliders = element(place, "div", { class: "spaql-row" });
    const two = element(place, "div", { class: "two" });
    const left = element(two, "div");
    const right = element(two, "div");
    const frame = element(left, "div", { class: "spaql-axes" });
    const upTicks = element(frame, "div", { class: "up", "aria-hidden": "true" });
    const map = element(frame, "canvas", { class: "map", width: 480, height: 360, tabindex: 0, role: "application" });
    element(frame, "div");
    const acrossTicks = element(frame, "div", { "aria-hidden": "true" });
    const key = element(left, "div", { class: "key" });
    const scene = element(right, "canvas", { width: 480, height: 270, role: "img" });
    const score = element(right, "div", { class: "score" });
    const buttons = element(right, "div", { class: "spaql-buttons" });
    const playButton = element(buttons, "button", { type: "button" }, "Play");
    const stepButton = element(buttons, "button", { type: "button" }, "One step");
    const resetButton = element(buttons, "button", { type: "button" }, "Back");
    const randomButton = element(buttons, "button", { type: "button", title: "Random start" }, "Random");
    const speedChoice = element(buttons, "select", { "aria-label": "Speed" });
    fill(speedChoice, [[0.25, "¼ speed"], [1, "real time"], [4, "4 × speed"]], 1);
    const strip = element(right, "canvas", { class: "strip", width: 480, height: 130, role: "img" });
    const readout = element(right, "div", { role: "status", "aria-live": "polite", "aria-label": "The cell" });
    element(place, "p", { class: "help" }, "Point at the map to read a cell; click, tap or drag to put the system there. "
      + "With the map in focus, arrow keys move (with Shift further), Enter or space plays and pauses. "
      + "While the system moves, the map is the slice through the state where it is.");
    const details = element(place, "details");
    const summary = element(details, "summary");
    const text = element(details, "pre", { tabindex: 0, "aria-label": "The policy as a decision tree" });

    let system, policy, picture, shade;
    let start = []; // the state chosen, one entry per variable
    let state = []; // where the system is now
    let trail = [];
    let earned = []; // the reward of each step
    let total = 0;
    let count = 0;
    let over = false;
    let playing = false;
    let clock = 0;
    let pointed = null; // a state the pointer is at

    const index = (select) => system.state.findIndex((variable) => variable.name === select.value);

    // Where a value of a state variable is between the ends of its axis, and the value at such a share.
    function shareAt(i, value) {
      const [low, high] = system.state[i].ends;
      return (value - low) / (high - low);
    }
    function valueAt(i, share) {
      const [low, high] = system.state[i].ends;
      return low + share * (high - low);
    }

    function chooseSystem() {
      system = data.systems[systemChoice.value];
      const entries = data.policies.map((p, i) => [i, p]).filter(([, p]) => p.system === systemChoice.value);
      entries.sort(([, one], [, other]) => other.reward - one.reward || one.leaves - other.leaves); // the best first
      fill(policyChoice, entries.map(([i, p]) => [i, `${p.title} (${p.leaves} leaves, ${number(p.reward, 0)})`]));
      const names = system.state.map((variable) => [variable.name, withSymbol(variable)]);
      fill(acrossChoice, names, system.axes[0]);
      fill(upChoice, names, system.axes[1]);
      start = [...known(system).start];
      choosePolicy();
    }

    const withSymbol = (variable) => (variable.unit ? `${variable.symbol} (${variable.unit})` : variable.symbol);

    function choosePolicy() {
      policy = data.policies[policyChoice.value];
      const cells = policy.q[0] !== null;
      const whats = [["action", system.action], ["q", "Q"], ["visits", "visits"]];
      fill(whatChoice, cells ? whats : whats.slice(0, 1), whatChoice.value);
      summary.textContent = `The tree that decides: ${policy.leaves} leaves, mean return ${number(policy.reward, 1)}`;
      text.textContent = policy.text;
      details.open = policy.leaves <= 12;
      chooseAxes();
    }

    function chooseAxes(changed) {
      if (acrossChoice.value === upChoice.value) {
        const other = changed === upChoice ? acrossChoice : upChoice;
        other.value = system.state.find((variable) => variable.name !== other.value).name;
      }
      sliders.replaceChildren();
      system.state.forEach((variable, i) => {
        if ([acrossChoice.value, upChoice.value].includes(variable.name)) return;
        const label = element(sliders, "label", {}, "");
        const caption = element(label, "span");
        const [min, max] = variable.ends;
        const slider = element(label, "input", { type: "range", min, max, step: (max - min) / 200 });
        slider.value = start[i];
        const show = () => {
          caption.textContent = `${variable.symbol} = ${inState(variable, start[i])}`;
          slider.setAttribute("aria-valuetext", inState(variable, start[i]));
        };
        show();
        slider.addEventListener("input", () => {
          start[i] = Number(slider.value);
          show();
          restart();
        });
      });
      restart();
    }

    function restart() {
      state = [...start];
      paint();
      reset();
    }

    // The state at a place of the map, in shares of its width and height; the other variables are where the system is.
    function stateAt(across, up) {
      const found = [...state];
      found[index(acrossChoice)] = valueAt(index(acrossChoice), across);
      found[index(upChoice)] = valueAt(index(upChoice), up);
      return found;
    }

    function placeOf(where) {
      const share = (select) => shareAlong(index(select), where[index(select)]);
      return [share(acrossChoice) * map.width, (1 - share(upChoice)) * map.height];
    }

    function shareAlong(i, value) {
      const { ends, period } = system.state[i];
      if (!period) return shareAt(i, value);
      const turned = (value - ends[0]) % period; // what turns round comes back on the other side
      return shareAt(i, ends[0] + (turned < 0 ? turned + period : turned));
    }

    // Paint the map once for a policy, its axes and the other variables; `drawMap` puts marks upon it.
    function paint(grain = 1) {
      const [width, height] = [map.width, map.height];
      shade = shading(system, policy, whatChoice.value);
      const colours = shade.shares.map((share) => colour(share, shade.stops));
      picture = new ImageData(width, height);
      const rows = new Int32Array(width * height);
      for (let j = 0; j < height; j++) {
        for (let i = 0; i < width; i++) {
          const here = j * width + i;
          const same = j % grain ? here - width : i % grain ? here - 1 : here; // a coarser picture is painted faster
          rows[here] = same !== here ? rows[same] : find(policy, observe(system, stateAt((i + 0.5) / width, 1 - (j + 0.5) / height)));
          const border = (i > 0 && rows[here] !== rows[here - 1]) || (j > 0 && rows[here] !== rows[here - width]);
          const [r, g, b] = border ? [150, 150, 150] : colours[rows[here]];
          picture.data.set([r, g, b, 255], 4 * here);
        }
      }
      if (grain > 1) return;
      labelAxes();
      key.replaceChildren();
      element(key, "span", {}, shade.ends[0]);
      const shares = whatChoice.value === "action" && system.choices.length
        ? system.choices.map((_, i, all) => i / (all.length - 1)).flatMap((share) => [share, share]) // a block each
        : shade.stops.map((_, i, all) => i / (all.length - 1));
      const blocks = shares.length / 2;
      const stops = shares.map((share, i) => `rgb(${colour(share, shade.stops)})`
        + (shares.length === shade.stops.length ? "" : ` ${(100 * Math.ceil(i / 2)) / blocks}%`)).join(",");
      element(key, "span", { class: "bar", style: `background: linear-gradient(90deg, ${stops})` });
      element(key, "span", {}, shade.ends[1]);
      const variables = [acrossChoice, upChoice].map((select) => system.state[index(select)].symbol).join(" and ");
      map.setAttribute("aria-label", `Map of the policy over ${variables}; arrow keys move the state`);
    }

    // The ends and the middle of both axes, with the variable's symbol and unit.
    function labelAxes() {
      for (const [ticks, select, shares] of [[upTicks, upChoice, [1, 0.5, 0]], [acrossTicks, acrossChoice, [0, 0.5, 1]]]) {
        ticks.replaceChildren();
        const i = index(select);
        const texts = shares.map((share) => number(valueAt(i, share), system.state[i].ends[1] < 1 ? 2 : 1));
        texts.splice(1, 1, `${withSymbol(system.state[i])}`);
        for (const text of texts) element(ticks, "span", {}, text);
      }
    }

    // Rewards of the last steps, and the variable across, as strips.
    function drawStrip() {
      const context = strip.getContext("2d");
      const style = getComputedStyle(place);
      const [ink, mark] = ["--ink", "--mark"].map((name) => style.getPropertyValue(name).trim());
      const i = index(acrossChoice);
      const half = strip.height / 2;
      context.clearRect(0, 0, strip.width, strip.height);
      const draw = (values, low, high, top, colourOf, name) => {
        context.fillStyle = ink;
        context.font = "20px system-ui, sans-serif";
        context.fillText(name, 6, top + 20);
        context.strokeStyle = colourOf;
        context.lineWidth = 2;
        context.beginPath();
        values.forEach((value, t) => {
          const x = (t / system.steps) * strip.width;
          const y = top + half - 4 - (Math.min(1, Math.max(0, (value - low) / (high - low || 1)))) * (half - 30);
          if (t === 0) context.moveTo(x, y);
          else context.lineTo(x, y);
        });
        context.stroke();
      };
      const lowest = Math.min(0, ...earned);
      draw(earned, lowest, Math.max(0, ...earned), 0, mark, `reward of a step, ${number(lowest, 1)} to ${number(Math.max(0, ...earned), 1)}`);
      const turned = trail.map((where) => shareAlong(i, where[i]));
      draw(turned, 0, 1, half, ink, withSymbol(system.state[i]));
      strip.setAttribute("aria-label", `Rewards and ${system.state[i].symbol} over ${count} steps`);
    }

    // Whether the system stands still for a while where that earns little.
    function stuck() {
      const poor = known(system).poor;
      if (poor === undefined || trail.length < 60 || earned[earned.length - 1] > poor) return false;
      const recent = trail.slice(-50);
      return system.state.every(({ ends }, i) => {
        const values = recent.map((where) => where[i]);
        return Math.max(...values) - Math.min(...values) < 0.02 * (ends[1] - ends[0]);
      });
    }

    function drawMap() {
      const context = map.getContext("2d");
      context.putImageData(picture, 0, 0);
      // White under black can be seen on every colour.
      const recent = trail.slice(-40);
      for (const [style, width] of [["white", 3.5], ["black", 1.5]]) {
        context.strokeStyle = style;
        context.lineWidth = width;
        context.beginPath();
        recent.forEach((where, i) => {
          const [x, y] = placeOf(where);
          const jump = i > 0 && Math.abs(x - placeOf(recent[i - 1])[0]) > map.width / 2;
          if (i === 0 || jump) context.moveTo(x, y);
          else context.lineTo(x, y);
        });
        context.stroke();
        const [x, y] = placeOf(state);
        context.beginPath();
        context.moveTo(x - 12, y);
        context.lineTo(x + 12, y);
        context.moveTo(x, y - 12);
        context.lineTo(x, y + 12);
        context.stroke();
        context.beginPath();
        context.arc(x, y, 7, 0, 2 * Math.PI);
        context.stroke();
      }
      context.fillStyle = "#ff5c4d";
      context.fill();
    }

    const inWords = (where) => system.state.map((v, i) => `${v.symbol} ${inState(v, where[i])}`).join(", ");

    function drawScene(action) {
      const context = scene.getContext("2d");
      const style = getComputedStyle(place);
      const [ink, mark] = ["--ink", "--mark"].map((name) => style.getPropertyValue(name).trim());
      const [width, height] = [scene.width, scene.height];
      context.clearRect(0, 0, width, height);
      context.strokeStyle = context.fillStyle = ink;
      context.lineCap = "round";
      const line = (x0, y0, x1, y1, thick) => {
        context.lineWidth = thick;
        context.beginPath();
        context.moveTo(x0, y0);
        context.lineTo(x1, y1);
        context.stroke();
      };
      const arrow = (x, y, side) => { // to the left (-1) or to the right (1) of something
        const tip = x + side * 78;
        line(x + side * 40, y, tip, y, 4);
        line(tip, y, tip - side * 12, y - 9, 4);
        line(tip, y, tip - side * 12, y + 9, 4);
      };
      known(system).draw({ context, width, height, ink, mark, line, arrow }, system, state, action);
      scene.setAttribute("aria-label", `${system.title} at ${inWords(state)}`);
    }

    function read() {
      const observation = observe(system, pointed || state);
      const row = find(policy, observation);
      const bounds = cellBounds(system, policy, observation);
      readout.replaceChildren();
      const table = element(readout, "table");
      const add = (name, value) => {
        const line = element(table, "tr");
        element(line, "th", { scope: "row" }, name);
        element(line, "td", {}, value);
      };
      add(pointed ? "State pointed at" : "State", inWords(pointed || state));
      bounds.forEach(([low, high], i) => {
        const decimals = high - low < 0.1 ? 3 : 2;
        add(`${system.observed[i]} in its cell`,
          withUnit(`${number(low, decimals)} to ${number(high, decimals)}`, system.units[i]));
      });
      add(system.action, actionInWords(system, policy, row));
      if (policy.q[row] !== null) {
        add("Q", number(policy.q[row], 1));
        add("visits", String(policy.visits[row]));
      }
    }

    function show(action) {
      drawMap();
      drawScene(action);
      const { decimals, ending } = known(system);
      drawStrip();
      const end = over ? `, ${count >= system.steps ? "the end" : ending}` : stuck() ? ", stuck" : "";
      score.textContent = `Step ${count} of ${system.steps}, return ${number(total, decimals)}${end}`;
      read();
    }

    function reset() {
      const moved = count > 0;
      pause();
      state = [...start];
      if (moved) paint(); // the slice is where the system is
      trail = [state];
      earned = [];
      total = count = 0;
      over = false;
      show(0);
    }

    function advance() {
      if (over) return;
      const action = act(policy, observe(system, state));
      const result = step(system, state, action);
      state = result.state;
      trail.push(state);
      total += result.reward;
      earned.push(result.reward);
      count += 1;
      over = result.over || count >= system.steps;
      if (playing && system.state.length > 2) paint(4);
      if (over) pause();
      show(physical(system, action));
    }

    function pause() {
      if (playing && system.state.length > 2) paint();
      playing = false;
      clearTimeout(clock);
      playButton.textContent = "Play";
      readout.setAttribute("aria-live", "polite");
    }

    function play() {
      if (over) reset();
      playing = true;
      pointed = null;
      playButton.textContent = "Pause";
      readout.setAttribute("aria-live", "off"); // not every step is to be read out
      const pace = (1000 * known(system).seconds(system.constants)) / Number(speedChoice.value);
      let due = performance.now() + pace;
      const next = () => {
        if (!playing) return;
        advance();
        // A browser that fell behind does not catch up all at once.
        due = Math.max(due + pace, performance.now());
        clock = setTimeout(next, due - performance.now());
      };
      clock = setTimeout(next, pace);
    }

    function toggle() {
      if (!playing) return play();
      pause();
      drawMap();
    }

    function shareOf(event) {
      const box = map.getBoundingClientRect();
      const share = (at, from, size) => Math.min(1, Math.max(0, (at - from) / size));
      return [share(event.clientX, box.left, box.width), 1 - share(event.clientY, box.top, box.height)];
    }

    function put(across, up) {
      start = stateAt(across, up);
      pointed = null;
      reset();
    }

    map.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      map.focus({ preventScroll: true }); // or the place pointed at would move
      if (map.setPointerCapture && event.isTrusted) map.setPointerCapture(event.pointerId);
      put(...shareOf(event));
    });
    map.addEventListener("pointermove", (event) => {
      if (event.buttons) put(...shareOf(event));
      else if (!playing) {
        pointed = stateAt(...shareOf(event));
        read();
      }
    });
    map.addEventListener("pointerleave", () => {
      pointed = null;
      if (!playing) read();
    });
    map.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      if (event.key in moves) {
        const size = event.shiftKey ? 0.1 : 0.01;
        const share = (i) => shareAt(i, start[i]);
        const [dx, dy] = moves[event.key];
        const bounded = (value) => Math.min(1, Math.max(0, value));
        put(bounded(share(index(acrossChoice)) + dx * size), bounded(share(index(upChoice)) + dy * size));
      } else if (event.key === " " || event.key === "Enter") toggle();
      else return;
      event.preventDefault();
    });
    systemChoice.addEventListener("change", chooseSystem);
    policyChoice.addEventListener("change", choosePolicy);
    acrossChoice.addEventListener("change", () => chooseAxes(acrossChoice));
    upChoice.addEventListener("change", () => chooseAxes(upChoice));
    whatChoice.addEventListener("change", () => {
      paint();
      show(0);
    });
    playButton.addEventListener("click", toggle);
    stepButton.addEventListener("click", () => {
      pause();
      pointed = null;
      if (over) reset();
      advance();
    });
    resetButton.addEventListener("click", reset);
    randomButton.addEventListener("click", () => {
      const spread = (i) => (data.systems[systemChoice.value].state[i].period ? 1 : 0.15); // anywhere on a circle, else near
      start = system.state.map((_, i) => valueAt(i, 0.5 + spread(i) * (Math.random() - 0.5)));
      chooseAxes();
    });
    speedChoice.addEventListener("change", () => {
      if (playing) {
        clearTimeout(clock);
        play();
      }
    });
    // The book's switch between light and dark.
    new MutationObserver(() => show(0)).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    fill(systemChoice, Object.entries(data.systems).map(([id, s]) => [id, s.title]));
    chooseSystem();
  }

  return { observe, step, find, act, cellBounds, episode, build };
})();

{
  const place = document.getElementById("spaql-explorer");
  if (place) spaqlExplorer.build(place, SPAQL_POLICIES);
}

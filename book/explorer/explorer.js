"use strict";
// The policy explorer: maps of policies, and the systems simulated under them.  It needs SPAQL_POLICIES (policies.js,
// written by spaql.paper.book.explorer.write_policies), SPAQL_SYSTEMS (the files of systems/) and an element with the id
// "spaql-explorer"; nothing is loaded from anywhere.

const spaqlExplorer = (() => {
  // -------------------------------------------------------------------------------------------------------------------
  // The systems.  Each has a file of its own with its physics and its drawing; all else is in the data.

  const known = (system) => SPAQL_SYSTEMS[system.family];
  const observe = (system, state) => known(system).observe(state);

  // Apply an action (a number of the list of actions, a value, or the values of several actuators); return the next
  // state, the reward and the end.
  const step = (system, state, action) => known(system).step(system.constants, state, action);

  // -------------------------------------------------------------------------------------------------------------------
  // The policies: exact trees, and networks.  In a leaf of a tree, `left` is the number of its row.

  // What the questions are about: where a policy has a sine for a cosine, the angle stands in the place of the cosine.
  const asked = ({ sine }, observation) => (sine
    ? observation.map((value, i) => (sine[i] >= 0 ? Math.atan2(observation[sine[i]], value) : value))
    : observation);

  function find(policy, observation) {
    const seen = asked(policy, observation);
    let node = 0;
    while (policy.feature[node] >= 0) {
      const below = seen[policy.feature[node]] < policy.threshold[node];
      node = below ? policy.left[node] : policy.right[node];
    }
    return policy.left[node];
  }

  // The layers of a network: 32-bit floats, one row per input and a last one of biases.
  const decoded = new Map();
  function layersOf(policy) {
    if (!decoded.has(policy)) {
      decoded.set(policy, policy.layers.map((text) =>
        new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer)));
    }
    return decoded.get(policy);
  }

  // What a network does: tanh between layers and bounds at the end, or, of SAC, ReLU and a tanh spread over the bounds.
  function think(system, policy, observation) {
    const layers = layersOf(policy);
    const values = layers.reduce((inputs, layer, i) => {
      const width = layer.length / (inputs.length + 1);
      const outputs = Float64Array.from(layer.subarray(inputs.length * width));
      inputs.forEach((input, row) => {
        if (input !== 0) for (let j = 0; j < width; j += 1) outputs[j] += input * layer[row * width + j];
      });
      if (i === layers.length - 1) return outputs;
      return outputs.map(policy.squashed ? (value) => Math.max(0, value) : Math.tanh);
    }, observation);
    if (system.choices.length) return values.indexOf(Math.max(...values));
    const taken = system.actions.map(({ ends: [low, high] }, i) => (policy.squashed
      ? low + ((Math.tanh(values[i]) + 1) * (high - low)) / 2 : Math.min(high, Math.max(low, values[i]))));
    return taken.length > 1 ? taken : taken[0];
  }

  const act = (system, policy, observation) =>
    (policy.layers ? think(system, policy, observation) : policy.action[find(policy, observation)]);
  const hasCells = (policy) => Boolean(policy?.q) && policy.q[0] !== null;

  // The bounds of the cell that holds an observation, [lowest, highest] for each variable that the policy asks for.
  function cellBounds(system, policy, observation) {
    const ends = policy.bounds || system.bounds;
    const bounds = ends.map((pair) => (pair ? [...pair] : [-Infinity, Infinity]));
    const seen = asked(policy, observation);
    let node = 0;
    while (policy.feature[node] >= 0) {
      const variable = policy.feature[node];
      const below = seen[variable] < policy.threshold[node];
      bounds[variable][below ? 1 : 0] = policy.threshold[node];
      node = below ? policy.left[node] : policy.right[node];
    }
    return bounds;
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Runs: a system from a state on.

  const newRun = (start) => ({ state: [...start], trail: [[...start]], earned: [], total: 0, over: false });

  function advanceRun(system, run, action) {
    const result = step(system, run.state, action);
    run.state = result.state;
    run.trail.push(result.state);
    run.earned.push(result.reward);
    run.total += result.reward;
    run.fell = result.over; // before its time
    run.over = result.over || run.earned.length >= system.steps;
  }

  // A whole episode; with `actions` these are applied, otherwise the policy's.
  function episode(system, policy, start, actions) {
    const run = newRun(start);
    const taken = [];
    while (!run.over && (!actions || taken.length < actions.length)) {
      taken.push(actions ? actions[taken.length] : act(system, policy, observe(system, run.state)));
      advanceRun(system, run, taken[taken.length - 1]);
    }
    return { states: run.trail, actions: taken, total: run.total, over: Boolean(run.fell) };
  }

  // Whether the system stands still for a while where that earns little.
  function isStuck(system, { trail, earned }) {
    const poor = known(system).poor;
    if (poor === undefined || trail.length < 60 || earned[earned.length - 1] > poor) return false;
    const recent = trail.slice(-50);
    return system.state.every(({ ends }, i) => {
      const values = recent.map((where) => where[i]);
      return Math.max(...values) - Math.min(...values) < 0.02 * (ends[1] - ends[0]);
    });
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Words and colours

  // Cividis: from dark blue to yellow, ever lighter, so that grey shows the same order.
  const STOPS = [[0, 34, 78], [66, 78, 108], [125, 124, 120], [186, 173, 108], [254, 232, 56]];

  // Of actions with both signs: blue, a neutral zero, orange.
  const SIGNED = [[11, 60, 125], [127, 178, 229], [244, 244, 244], [253, 184, 99], [230, 97, 1]];

  const shadesOf = (low, high) => (low < 0 && high > 0 ? SIGNED : STOPS);

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

  // What an action does with the i-th actuator.
  const part = (system, action, i) => (Array.isArray(action) ? action[i] : physical(system, action));

  function actionInWords(system, i, action, low = action, high = action) {
    const { unit } = system.actions[i];
    const told = (given) => known(system).words?.(part(system, given, i), i);
    const signed = (given) => {
      const value = part(system, given, i);
      return (value > 0 ? "+" : "") + number(value, system.choices.length ? 0 : 2);
    };
    const bare = Boolean(told(action)) && !unit; // a number without a unit says nothing beside its name
    const said = bare ? told : signed;
    let words = bare ? told(action) : withUnit(signed(action), unit);
    if (!bare && told(action)) words = `${told(action)}, ${words}`;
    if (said(low) !== said(high)) words += ` (the middle of ${said(low)} to ${said(high)})`;
    return words;
  }

  // What colours show: a share between 0 and 1 for each row of a tree, and the words at the two ends.
  function shading(system, policy, what) {
    if (what in system.actions) {
      const { ends: [low, high], unit } = system.actions[what];
      const digits = high - low < 2 ? 2 : 0;
      const ends = [low, high].map((end) => (!unit && known(system).words?.(end, what)) || withUnit(number(end, digits), unit));
      const shareOf = (action) => (part(system, action, what) - low) / (high - low);
      return { shareOf, shares: policy.action?.map(shareOf), ends, stops: shadesOf(low, high) };
    }
    const values = what === "visits" ? policy.visits.map((v) => Math.log(Math.max(1, v))) : policy.q;
    const low = Math.min(...values);
    const high = Math.max(...values);
    const raw = policy[what];
    const ends = [Math.min(...raw), Math.max(...raw)].map((end) => number(end, what === "q" ? 1 : 0));
    return { shares: values.map((v) => (high > low ? (v - low) / (high - low) : 0.5)), ends, stops: STOPS };
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The page: one panel, or two beside each other that run from the same start.

  const STYLE = `
    .spaql { --ink: #1b1b1b; --soft: #eef0f3; --line: #8a8f98; --mark: #b3261e;
      color: var(--ink); font: 16px/1.45 system-ui, sans-serif; }
    @media (prefers-color-scheme: dark) { html:not([data-theme="light"]) .spaql {
      --ink: #ececec; --soft: #262a31; --line: #8a8f98; --mark: #ff8a80; } }
    html[data-theme="dark"] .spaql {
      --ink: #ececec; --soft: #262a31; --line: #8a8f98; --mark: #ff8a80; }
    .spaql * { box-sizing: border-box; }
    .spaql .spaql-row { display: flex; flex-wrap: wrap; gap: 0.4rem 1rem; margin: 0.5rem 0; align-items: end; }
    .spaql label { display: flex; flex-direction: column; font-size: 0.9rem; min-width: 7rem; flex: 1 1 7rem; }
    .spaql label.broad { flex: 9 1 17rem; }
    .spaql select, .spaql button { font: inherit; font-size: 0.85rem; color: var(--ink); background: var(--soft); min-height: 2.75rem;
      border: 1px solid var(--line); border-radius: 0.4rem; padding: 0.3rem 0.4rem; max-width: 100%; cursor: pointer; }
    .spaql input[type=range] { width: 100%; min-height: 2.2rem; }
    .spaql .one { display: grid; gap: 0 1rem; align-items: start;
      grid-template: "who who" auto "mapped seen" auto "mapped more" auto "chosen more" 1fr "tree tree" auto
        / minmax(0, 1fr) minmax(0, 1fr); }
    .spaql .one .panel { display: contents; }
    .spaql .both { display: grid; gap: 0 0.8rem; grid-template: repeat(6, auto) / minmax(0, 1fr) minmax(0, 1fr); }
    .spaql .both .panel { display: grid; grid-row: span 5; grid-template-rows: subgrid; align-items: start;
      grid-template-areas: "who" "seen" "mapped" "more" "tree"; }
    .spaql .panel > * { min-width: 0; }
    .spaql .who { grid-area: who; margin: 0.3rem 0; font-size: 0.9rem; }
    .spaql .seen { grid-area: seen; }
    .spaql .mapped { grid-area: mapped; }
    .spaql .more { grid-area: more; }
    .spaql details { grid-area: tree; }
    .spaql .one .chosen { grid-area: chosen; }
    .spaql .both .chosen { grid-column: 1 / -1; }
    .spaql [hidden] { display: none !important; }
    .spaql canvas { width: 100%; display: block; border: 1px solid var(--line); border-radius: 0.3rem; }
    .spaql canvas.map { touch-action: pan-y; cursor: crosshair; }
    .spaql label.check { flex: 0 1 auto; flex-direction: row; align-items: center; gap: 0.4rem; min-height: 2.75rem; }
    .spaql .pushes { display: flex; gap: 0.4rem; }
    .spaql .spaql-axes { display: grid; grid-template-columns: auto 1fr; gap: 0.2rem 0.4rem; font-size: 0.85rem; }
    .spaql .spaql-axes > div { display: flex; justify-content: space-between; font-variant-numeric: tabular-nums; }
    .spaql .spaql-axes > div.up { flex-direction: column; text-align: right; }
    .spaql canvas.strip { margin-top: 0.4rem; }
    .spaql .spaql-buttons { display: flex; gap: 0.4rem; margin: 0.5rem 0; align-items: stretch; }
    .spaql .spaql-buttons button, .spaql .spaql-buttons select { flex: 1 1 auto; min-width: 0;
      padding: 0.3rem; font-size: 0.85rem; white-space: nowrap; }
    .spaql .drive { grid-area: mapped; padding: 0.4rem; border: 1px solid var(--line); border-radius: 0.4rem; }
    .spaql .drive p { font-size: 0.85rem; margin: 0 0 0.3rem; }
    .spaql .drive button { touch-action: none; user-select: none; }
    .spaql .drive button[aria-pressed=true] { outline: 2px solid var(--mark); }
    .spaql :focus-visible { outline: 3px solid #2f7de1; outline-offset: 2px; }
    .spaql table { border-collapse: collapse; width: 100%; margin: 0.4rem 0; font-variant-numeric: tabular-nums; }
    .spaql th, .spaql td { text-align: left; padding: 0.15rem 0.6rem 0.15rem 0; border-bottom: 1px solid var(--soft);
      font-weight: normal; background: none; color: inherit; vertical-align: top; }
    .spaql .one th { white-space: nowrap; }
    .spaql pre { overflow: auto; max-height: 24rem; padding: 0.6rem; background: var(--soft); color: var(--ink);
      font-size: 0.85rem; line-height: 1.35; border: none; }
    .spaql .key { display: flex; align-items: center; gap: 0.5rem; font-size: 0.9rem; margin: 0.3rem 0; }
    .spaql .key span.bar { flex: 1; min-width: 2rem; height: 0.8rem; border: 1px solid var(--line); }
    .spaql .score { font-size: 1.15rem; font-variant-numeric: tabular-nums; margin: 0.4rem 0; min-height: 1.5em; }
    .spaql p.help { font-size: 0.9rem; margin: 0.3rem 0; }
    .spaql summary { cursor: pointer; min-height: 2.2rem; }
    @media (max-width: 600px) {
      .spaql .one, .spaql .one .panel { display: block; }
      .spaql .both { gap: 0 0.4rem; }
      .spaql .both .score { font-size: 0.9rem; min-height: 4.2em; }
      .spaql .both .who, .spaql .drive p { font-size: 0.8rem; }
      .spaql .both [role=status], .spaql .both .up, .spaql .both .strip { display: none; }
      .spaql .both .spaql-axes { display: block; }
      .spaql .spaql-buttons { flex-wrap: wrap; }
    }
  `;

  function element(parent, tag, attributes = {}, text = "") {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text) made.textContent = text;
    parent.append(made);
    return made;
  }

  function choice(parent, text, kind = "") {
    return element(element(parent, "label", { class: kind }, text), "select");
  }

  function fill(select, entries, chosen) {
    select.replaceChildren();
    for (const [value, text] of entries) element(select, "option", { value }, text);
    if (entries.some(([value]) => String(value) === String(chosen))) select.value = chosen;
  }

  // Where a value of a state variable is between the ends of its axis, and the value at such a share.
  const shareAt = ({ ends: [low, high] }, value) => (value - low) / (high - low);
  const valueAt = ({ ends: [low, high] }, share) => low + share * (high - low);

  function shareAlong(variable, value) {
    if (!variable.period) return shareAt(variable, value);
    const turned = (value - variable.ends[0]) % variable.period; // what turns round comes back on the other side
    return shareAt(variable, variable.ends[0] + (turned < 0 ? turned + variable.period : turned));
  }

  const withSymbol = (variable) => (variable.unit ? `${variable.symbol} (${variable.unit})` : variable.symbol);
  // A state variable in words, as "angle θ"; what has no word here has its symbol.
  function variableInWords({ name, symbol }) {
    const [stem] = name.split("_");
    const words = name.endsWith("_dot")
      ? { theta: "angular velocity", x: "velocity" } : { theta: "angle", x: "position" };
    return stem in words ? `${words[stem]} ${symbol}` : symbol;
  }

  const stateInWords = (system, where) =>
    system.state.map((v, i) => `${v.symbol} ${inState(v, where[i])}`).join(", ");
  const counted = (leaves) => `${leaves.toLocaleString("en")} ${leaves === 1 ? "leaf" : "leaves"}`;
  const sized = ({ weights, leaves }) => (weights ? `${weights.toLocaleString("en")} weights` : counted(leaves));
  const policyName = (p) => `${p.algorithm}, ${p.made} (${sized(p)}, ${number(p.reward, 0)})`;

  // What a policy is, how it was made and what it earns, in a sentence or two.
  function policyInWords(system, policy) {
    const how = known(system).settled && policy.settled !== null
      ? `, and ${(100 * policy.settled).toFixed(1)} % of them ${known(system).settled}` : "";
    return `${policy.algorithm}, ${policy.made}: ${policy.origin}. ${sized(policy)}; `
      + `mean return ${number(policy.reward, known(system).decimals)} over ${policy.episodes.toLocaleString("en")} fresh episodes${how}.`;
  }

  function colours(place) {
    const style = getComputedStyle(place);
    return ["--ink", "--mark"].map((name) => style.getPropertyValue(name).trim());
  }

  function drawScene(scene, place, system, state, action) {
    const context = scene.getContext("2d");
    const [ink, mark] = colours(place);
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
    scene.setAttribute("aria-label", `${system.title} at ${stateInWords(system, state)}`);
  }

  // A text as lines that are no wider than `width` in the font of a canvas.
  function wrapped(context, text, width) {
    const lines = [""];
    for (const word of text.split(" ")) {
      const longer = `${lines[lines.length - 1]} ${word}`.trim();
      if (context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines;
  }

  const WINDOW = 500; // steps that the strips show of an episode without an end

  // The reward of every step so far, and the variable across, as strips; before the first step, what they will show.
  function drawStrip(strip, place, system, run, across) {
    const [earned, trail] = [run.earned.slice(-WINDOW), run.trail.slice(-WINDOW)];
    const context = strip.getContext("2d");
    const [ink, mark] = colours(place);
    const variable = system.state[across];
    const half = strip.height / 2;
    const size = Math.min(30, Math.max(20, (12 * strip.width) / (strip.clientWidth || strip.width)));
    context.clearRect(0, 0, strip.width, strip.height);
    if (!run.earned.length) {
      const words = `Plots of the reward and the ${variableInWords(variable)} appear here when you press Play.`;
      context.fillStyle = ink;
      context.font = `${size}px system-ui, sans-serif`;
      wrapped(context, words, strip.width - 24)
        .forEach((line, i) => context.fillText(line, 12, (1.6 + 1.3 * i) * size));
      strip.setAttribute("aria-label", words);
      return;
    }
    const draw = (values, low, high, top, colourOf, name) => {
      context.fillStyle = ink;
      context.font = `${size}px system-ui, sans-serif`;
      context.fillText(name, 6, top + size);
      context.strokeStyle = colourOf;
      context.lineWidth = 2;
      context.beginPath();
      values.forEach((value, t) => {
        const x = (t / Math.min(system.steps, WINDOW)) * strip.width;
        const y = top + half - 4 - (Math.min(1, Math.max(0, (value - low) / (high - low || 1)))) * (half - 30);
        if (t === 0) context.moveTo(x, y);
        else context.lineTo(x, y);
      });
      context.stroke();
    };
    const [lowest, highest] = [Math.min(0, ...earned), Math.max(0, ...earned)];
    draw(earned, lowest, highest, 0, mark, `reward of a step, ${number(lowest, 1)} to ${number(highest, 1)}`);
    draw(trail.map((where) => shareAlong(variable, where[across])), 0, 1, half, ink, withSymbol(variable));
    strip.setAttribute("aria-label", `Rewards and ${variable.symbol} over ${run.earned.length} steps`);
  }

  // The colours of a map and the words at their ends.
  function drawKey(key, system, shade, what) {
    key.replaceChildren();
    element(key, "span", {}, shade.ends[0]);
    const shares = what in system.actions && system.choices.length
      ? system.choices.map((_, i, all) => i / (all.length - 1)).flatMap((share) => [share, share]) // a block each
      : shade.stops.map((_, i, all) => i / (all.length - 1));
    const blocks = shares.length / 2;
    const stops = shares.map((share, i) => `rgb(${colour(share, shade.stops)})`
      + (shares.length === shade.stops.length ? "" : ` ${(100 * Math.ceil(i / 2)) / blocks}%`)).join(",");
    element(key, "span", { class: "bar", style: `background: linear-gradient(90deg, ${stops})` });
    element(key, "span", {}, shade.ends[1]);
  }

  // The ends of an axis, with the variable's symbol and unit between them.
  function labelAxis(ticks, variable, shares) {
    const texts = shares.map((share) => number(valueAt(variable, share), variable.ends[1] < 1 ? 2 : 1));
    ticks.replaceChildren();
    for (const text of [texts[0], withSymbol(variable), texts[1]]) element(ticks, "span", {}, text);
  }

  const ARROWS = { ArrowLeft: "←", ArrowUp: "↑", ArrowRight: "→", ArrowDown: "↓" };

  // A reader at the controls: buttons, or a slider for each actuator, and arrow keys.  What is let go returns to nothing
  // where a system has such an action; elsewhere the last one stays.  A system can say which keys do what, and its rest.
  function makeDrive(parent, system) {
    const box = element(parent, "div", { class: "drive", tabindex: 0, role: "group", "aria-label": "You drive" });
    const right = known(system).right ?? 1; // the sign of what moves to the right
    const discrete = system.choices.length > 0;
    const several = system.actions.length > 1;
    const [low, high] = system.actions[0].ends;
    const worth = (action) => right * physical(system, action);
    const order = discrete ? system.choices.map((_, i) => i).sort((one, other) => worth(one) - worth(other)) : [];
    const ends = discrete ? [order[0], order[order.length - 1]] : right > 0 ? [low, high] : [high, low];
    const none = discrete ? system.choices.indexOf(0) : 0;
    const nothing = several ? system.actions.map((one) => Math.min(one.ends[1], Math.max(one.ends[0], 0)))
      : none >= 0 && low < 0 ? none : null;
    const rest = known(system).rest ?? nothing;
    const keys = known(system).keys ?? (several ? {} : { ArrowLeft: ends[0], ArrowRight: ends[1] });
    const drive = { box, keys, action: rest ?? ends[0] };
    const held = Object.keys(keys).map((key) => ARROWS[key]).join(" ");
    element(box, "p", {}, (held ? `Hold the arrow keys ${held}, or ` : "Use ")
      + (discrete ? "the buttons" : several ? "the sliders" : "move the slider")
      + (rest === null ? "; the last push stays." : "."));
    const parts = discrete ? element(box, "div", { class: "spaql-buttons" }) : box;
    const buttons = new Map();
    const sliders = [];
    const set = (action) => {
      drive.action = action;
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === action)));
      sliders.forEach((slider, i) => { slider.value = right * part(system, action, i); });
    };
    drive.hold = (key) => set(keys[key]);
    drive.release = () => { if (rest !== null) set(rest); };
    for (const { name, ends: [least, most] } of discrete ? [] : system.actions) {
      const slider = element(several ? element(parts, "label", {}, name) : parts, "input", { type: "range",
        min: Math.min(right * least, right * most), max: Math.max(right * least, right * most),
        step: (most - least) / 100, "aria-label": name });
      slider.addEventListener("input", () => {
        const values = sliders.map((one) => right * Number(one.value));
        drive.action = several ? values : values[0];
      });
      sliders.push(slider);
    }
    for (const action of order) {
      const value = physical(system, action);
      const text = known(system).words?.(value) || withUnit((value > 0 ? "+" : "") + number(value, 0), system.actions[0].unit);
      const button = element(parts, "button", { type: "button" }, text);
      button.addEventListener("pointerdown", () => set(action));
      for (const end of ["pointerup", "pointerleave", "pointercancel"]) button.addEventListener(end, drive.release);
      button.addEventListener("click", (event) => { if (event.detail === 0) set(action); }); // by the keyboard
      buttons.set(action, button);
    }
    set(drive.action);
    return drive;
  }

  // A panel: the system under a policy, or under the reader's hand, with the policy's map.  `view` is what all panels
  // share: the system, where episodes start, the axes and colours of maps, and what a map's clicks and keys do.
  function makePanel(parent, place, view) {
    const box = element(parent, "div", { class: "panel" });
    const who = element(box, "p", { class: "who" });
    const seen = element(box, "div", { class: "seen" });
    const scene = element(seen, "canvas", { width: 480, height: 270, role: "img" });
    const score = element(seen, "div", { class: "score" });
    const mapped = element(box, "div", { class: "mapped" });
    const frame = element(mapped, "div", { class: "spaql-axes" });
    const upTicks = element(frame, "div", { class: "up", "aria-hidden": "true" });
    const map = element(frame, "canvas", { class: "map", width: 480, height: 360, tabindex: 0, role: "application" });
    element(frame, "div");
    const acrossTicks = element(frame, "div", { "aria-hidden": "true" });
    const key = element(mapped, "div", { class: "key" });
    const more = element(box, "div", { class: "more" });
    const strip = element(more, "canvas", { class: "strip", width: 480, height: 130, role: "img" });
    const readout = element(more, "div", { role: "status", "aria-live": "polite", "aria-label": "The state" });
    const details = element(box, "details");
    const summary = element(details, "summary");
    const text = element(details, "pre", { tabindex: 0, "aria-label": "The policy as a decision tree" });

    const panel = { box, policy: null, drive: null, run: newRun([]) };
    let picture = null;
    let slice = []; // what it shows
    let painted = 0; // when
    let pointed = null; // a state the pointer is at

    // Show a policy; null for the reader.
    panel.take = (policy) => {
      panel.policy = policy;
      panel.drive?.box.remove();
      panel.drive = policy ? null : makeDrive(box, view.system);
      mapped.hidden = readout.hidden = !policy;
      details.hidden = !policy?.text; // a network has none
      if (!policy) {
        who.textContent = "You drive.";
        return;
      }
      who.textContent = policyInWords(view.system, policy);
      summary.textContent = `The tree that decides: ${sized(policy)}, mean return ${number(policy.reward, 1)}`;
      text.textContent = policy.text;
      details.open = policy.leaves <= 12;
    };

    // The state at a place of the map, in shares of its width and height; the other variables are where the system is.
    function stateAt(across, up) {
      const found = [...panel.run.state];
      found[view.across] = valueAt(view.system.state[view.across], across);
      found[view.up] = valueAt(view.system.state[view.up], up);
      return found;
    }

    function placeOf(where) {
      const share = (i) => shareAlong(view.system.state[i], where[i]);
      return [share(view.across) * map.width, (1 - share(view.up)) * map.height];
    }

    // Paint the map once for a policy, its axes and the other variables; `drawMap` puts marks upon it.
    panel.paint = (grain = 1) => {
      if (!panel.policy) return;
      const { system } = view;
      const { policy } = panel;
      const what = hasCells(policy) || view.what in system.actions ? view.what : "0";
      const held = panel.run.state.filter((_, i) => i !== view.across && i !== view.up);
      const asks = [policy, what, view.across, view.up, grain, ...held];
      if (asks.length === slice.length && asks.every((part, i) => part === slice[i])) return;
      slice = asks;
      const shade = shading(system, policy, what);
      if (policy.layers) paintNetwork(shade, grain);
      else paintTree(shade, grain);
      painted = performance.now();
      if (grain > 1) return;
      labelAxis(upTicks, system.state[view.up], [1, 0]);
      labelAxis(acrossTicks, system.state[view.across], [0, 1]);
      drawKey(key, system, shade, what);
      const variables = [view.across, view.up].map((i) => system.state[i].symbol).join(" and ");
      map.setAttribute("aria-label", `Map of the policy over ${variables}; arrow keys move the state`);
    };

    function paintTree(shade, grain) {
      const { system } = view;
      const { policy } = panel;
      const [width, height] = [map.width, map.height];
      const shades = shade.shares.map((share) => colour(share, shade.stops));
      // A coarser picture is painted faster.
      const [across, up] = [Math.ceil(width / grain), Math.ceil(height / grain)];
      const rows = new Int32Array(across * up);
      for (let j = 0; j < up; j++) {
        for (let i = 0; i < across; i++) {
          const where = stateAt((grain * i + 0.5) / width, 1 - (grain * j + 0.5) / height);
          rows[j * across + i] = find(policy, observe(system, where));
        }
      }
      picture = new ImageData(width, height);
      const pixels = new Uint32Array(picture.data.buffer);
      const packed = shades.map(([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
      const grey = (255 << 24) | (150 << 16) | (150 << 8) | 150;
      for (let j = 0; j < height; j++) {
        for (let i = 0; i < width; i++) {
          const here = Math.floor(j / grain) * across + Math.floor(i / grain);
          const left = i % grain === 0 && i > 0 && rows[here] !== rows[here - 1];
          const above = j % grain === 0 && j > 0 && rows[here] !== rows[here - across];
          pixels[j * width + i] = left || above ? grey : packed[rows[here]];
        }
      }
    }

    // A network is asked at as many points as take a moment, and its continuous actions are drawn in between.
    function paintNetwork(shade, least) {
      const { system } = view;
      const { policy } = panel;
      const [width, height] = [map.width, map.height];
      const grain = Math.max(least, Math.ceil(Math.sqrt((width * height * policy.weights) / 2e8)));
      const [across, up] = [Math.ceil(width / grain), Math.ceil(height / grain)];
      const asked = new ImageData(across, up);
      for (let j = 0; j < up; j += 1) {
        for (let i = 0; i < across; i += 1) {
          const where = observe(system, stateAt((i + 0.5) / across, 1 - (j + 0.5) / up));
          const share = shade.shareOf(act(system, policy, where));
          asked.data.set([...colour(share, shade.stops), 255], 4 * (j * across + i));
        }
      }
      const [small, large] = [[across, up], [width, height]].map((size) => new OffscreenCanvas(...size).getContext("2d"));
      small.putImageData(asked, 0, 0);
      large.imageSmoothingEnabled = !system.choices.length;
      large.drawImage(small.canvas, 0, 0, width, height);
      picture = large.getImageData(0, 0, width, height);
    }

    function drawMap() {
      const context = map.getContext("2d");
      context.putImageData(picture, 0, 0);
      // White under black can be seen on every colour.
      const recent = panel.run.trail.slice(-40);
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
        const [x, y] = placeOf(panel.run.state);
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

    function read() {
      const { system } = view;
      const { policy } = panel;
      const where = pointed || panel.run.state;
      const observation = observe(system, where);
      readout.replaceChildren();
      const table = element(readout, "table");
      const add = (name, value) => {
        const line = element(table, "tr");
        element(line, "th", { scope: "row" }, name);
        element(line, "td", {}, value);
      };
      add(pointed ? "State pointed at" : "State", stateInWords(system, where));
      if (policy.layers) {
        const action = act(system, policy, observation);
        system.actions.forEach(({ name }, i) => add(name, actionInWords(system, i, action)));
        return;
      }
      const row = find(policy, observation);
      cellBounds(system, policy, observation).forEach(([low, high], i) => {
        const name = policy.asked ? policy.asked[i] : system.observed[i];
        if (!name) return; // a sine, of which the angle says all
        const decimals = high - low < 0.1 ? 3 : 2;
        const unit = policy.asked ? policy.units[i] : system.units[i];
        add(`${name} in its cell`, withUnit(`${number(low, decimals)} to ${number(high, decimals)}`, unit));
      });
      const taken = [policy.action, policy.low, policy.high].map((list) => list[row]);
      system.actions.forEach(({ name }, i) => add(name, actionInWords(system, i, ...taken)));
      if (policy.q[row] !== null) {
        add("Q", number(policy.q[row], 1));
        add("visits", String(policy.visits[row]));
      }
    }

    panel.show = (action) => {
      const { system } = view;
      const nothing = system.actions.length > 1 ? system.actions.map(() => 0) : 0;
      const { run } = panel;
      const { decimals, ending } = known(system);
      const count = run.earned.length;
      drawScene(scene, place, system, run.state, action ?? nothing);
      drawStrip(strip, place, system, run, view.across);
      const end = run.over ? `, ${count >= system.steps ? "the end" : ending}` : isStuck(system, run) ? ", stuck" : "";
      const limit = Number.isFinite(system.steps) ? ` of ${system.steps}` : "";
      score.textContent = `Step ${count}${limit}, return ${number(run.total, decimals)}${end}`;
      if (!panel.policy) return;
      drawMap();
      read();
    };

    panel.reset = () => {
      pointed = null;
      panel.run = newRun(view.start);
      panel.drive?.release();
      panel.paint(); // the slice is where the system is
      panel.show();
    };

    // Play a step, with a push after it: chance's, or the reader's.
    panel.advance = (push = 0) => {
      const { system } = view;
      if (panel.run.over) return;
      pointed = null;
      const action = panel.policy ? act(system, panel.policy, observe(system, panel.run.state)) : panel.drive.action;
      advanceRun(system, panel.run, action);
      if (push) panel.push(push);
      // The slice moves with the system; to paint it at every step would slow the system down.
      if (system.state.length > 2 && !view.playing) panel.paint();
      else if (system.state.length > 2 && performance.now() - painted > 500) panel.paint(4);
      panel.show(physical(system, action));
    };

    panel.push = (by) => { panel.run.state = known(view.system).push(panel.run.state, by); };

    panel.hush = (quiet) => readout.setAttribute("aria-live", quiet ? "off" : "polite"); // not every step is read out

    function shareOf(event) {
      const around = map.getBoundingClientRect();
      const share = (at, from, size) => Math.min(1, Math.max(0, (at - from) / size));
      return [share(event.clientX, around.left, around.width), 1 - share(event.clientY, around.top, around.height)];
    }

    map.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      map.focus({ preventScroll: true }); // or the place pointed at would move
      if (map.setPointerCapture && event.isTrusted) map.setPointerCapture(event.pointerId);
      view.put(stateAt(...shareOf(event)));
    });
    map.addEventListener("pointermove", (event) => {
      if (event.buttons) view.put(stateAt(...shareOf(event)));
      else if (!view.playing) {
        pointed = stateAt(...shareOf(event));
        read();
      }
    });
    map.addEventListener("pointerleave", () => {
      pointed = null;
      if (!view.playing) read();
    });
    map.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      if (event.key in moves) {
        const size = event.shiftKey ? 0.1 : 0.01;
        const moved = (i, by) => Math.min(1, Math.max(0, shareAt(view.system.state[i], view.start[i]) + by * size));
        const [dx, dy] = moves[event.key];
        view.put(stateAt(moved(view.across, dx), moved(view.up, dy)));
      } else if (event.key === " " || event.key === "Enter") view.toggle();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    return panel;
  }

  function build(place, data) {
    place.replaceChildren();
    const unknown = Object.values(data.systems).find((system) => !known(system));
    if (unknown) {
      place.textContent = `${unknown.title} cannot be drawn: no file of systems/ that this page loads defines ` +
        `SPAQL_SYSTEMS.${unknown.family}.`;
      return;
    }
    place.classList.add("spaql");
    element(place, "style", {}, STYLE);
    const top = element(place, "div", { class: "spaql-row" });
    const systemChoice = choice(top, "System");
    const policyChoice = choice(top, "Policy", "broad");
    const besideChoice = choice(top, "Beside it", "broad");
    const buttons = element(place, "div", { class: "spaql-buttons" });
    const playButton = element(buttons, "button", { type: "button" }, "Play");
    const stepButton = element(buttons, "button", { type: "button" }, "One step");
    const resetButton = element(buttons, "button", { type: "button", title: "Back to where the episode began" },
      "Back to start");
    const randomButton = element(buttons, "button", { type: "button", title: "Begin in a random state" }, "Random start");
    const speedChoice = element(buttons, "select", { "aria-label": "Speed" });
    fill(speedChoice, [[0.25, "¼ speed"], [0.5, "½ speed"], [1, "real time"], [4, "4 × speed"]], 1);
    const disturb = element(place, "div", { class: "spaql-row" });
    const pushes = element(element(disturb, "div", { class: "spaql-buttons" }), "span", { class: "pushes" });
    const pushButtons = [["← push", -1], ["push →", 1]].map(([text, side]) => {
      const button = element(pushes, "button", { type: "button" }, text);
      button.addEventListener("click", () => {
        for (const panel of shown()) {
          panel.push(5 * side);
          panel.show();
        }
      });
      return button;
    });
    const FACTORS = { mass: [0.5, 2], length: [0.5, 2], noise: [0, 2] };
    const factors = Object.fromEntries(Object.entries(FACTORS).map(([name, [min, max]]) => {
      const label = element(disturb, "label");
      const caption = element(label, "span");
      const input = element(label, "input", { type: "range", min, max, step: 0.05, value: name === "noise" ? 0 : 1 });
      return [name, { label, caption, input }];
    }));
    const endless = element(element(disturb, "label", { class: "check" }), "input", { type: "checkbox" });
    endless.parentElement.append("no time limit");
    const room = element(place, "div", { class: "one" });
    const chosen = element(room, "div", { class: "chosen" });
    const axes = element(chosen, "div", { class: "spaql-row" });
    const acrossChoice = choice(axes, "Across the map");
    const upChoice = choice(axes, "Up the map");
    const whatChoice = choice(axes, "Map colour");
    whatChoice.title = "What the colours of the map show";
    const sliders = element(chosen, "div", { class: "spaql-row" });
    const estimates = element(chosen, "p", { class: "help" }, "Q is the agent's estimate of the return still to come "
      + "if it takes the cell's action. It begins at the number of steps of an episode, so it can be far too high where "
      + "visits are few. Visits are how often training took this action here; a cell that is split passes its visits "
      + "on. The colours of visits are on a logarithmic scale.");
    element(place, "p", { class: "help" }, "Point at a map to read a cell; click, tap or drag to put the system there. "
      + "With a map in focus, arrow keys move the start (with Shift further), Enter or space plays and pauses. Mass and "
      + "length are multiples of what the policy was trained with; noise is a random push after every step. The address "
      + "of the page holds all that you choose.");
    const slice = element(place, "p", { class: "help" }, "The map shows two variables; the others are held at their "
      + "current values, so it changes as the system moves, twice a second while it plays.");

    const view = { system: null, start: [], across: 0, up: 1, what: "0", playing: false, put, toggle };
    const panels = [makePanel(room, place, view), makePanel(room, place, view)];
    room.append(chosen); // below them
    let clock = 0;
    let settled = false; // once the page shows what its address asks for
    const shown = () => (besideChoice.value === "none" ? panels.slice(0, 1) : panels);
    const over = () => shown().every((panel) => panel.run.over);
    const driving = () => shown().find((panel) => panel.drive)?.drive;

    // The system with the reader's mass and length, and as many steps as asked for.
    function vary() {
      const plain = data.systems[systemChoice.value];
      const { vary: varied, push } = known(plain);
      const values = Object.fromEntries(Object.entries(factors).map(([name, { input }]) => [name, Number(input.value)]));
      const constants = varied ? varied(plain.constants, values) : plain.constants;
      view.system = { ...plain, constants, steps: endless.checked ? Infinity : plain.steps };
      view.noise = values.noise;
      for (const [name, { label, caption, input }] of Object.entries(factors)) {
        label.hidden = name === "noise" ? !push : !varied || !String(varied).includes(name);
        caption.textContent = name === "noise" ? `noise ${values.noise}` : `${name} × ${values[name]}`;
        input.setAttribute("aria-valuetext", caption.textContent);
      }
      for (const button of pushButtons) button.hidden = !push;
    }

    function chooseSystem() {
      vary();
      const entries = data.policies.map((p, i) => [i, p]).filter(([, p]) => p.system === systemChoice.value)
        .map(([i, p]) => [i, policyName(p)]);
      fill(policyChoice, entries);
      fill(besideChoice, [["none", "nothing"], ["you", "you, at the controls"], ...entries],
        besideChoice.value === "you" ? "you" : "none");
      const names = view.system.state.map((variable) => [variable.name, withSymbol(variable)]);
      fill(acrossChoice, names, view.system.axes[0]);
      fill(upChoice, names, view.system.axes[1]);
      view.start = [...known(view.system).start];
      slice.hidden = view.system.state.length <= 2;
      choosePolicies();
    }

    function choosePolicies() {
      panels[0].take(data.policies[policyChoice.value]);
      panels[1].box.hidden = besideChoice.value === "none";
      room.className = panels[1].box.hidden ? "one" : "both";
      if (!panels[1].box.hidden) panels[1].take(data.policies[besideChoice.value] ?? null); // null: the reader drives
      const cells = shown().some(({ policy }) => hasCells(policy));
      const whats = view.system.actions.map(({ name }, i) => [i, name]);
      estimates.hidden = !cells;
      fill(whatChoice, cells ? [...whats, ["q", "Q"], ["visits", "visits"]] : whats, whatChoice.value);
      chooseAxes();
    }

    function chooseAxes(changed) {
      if (acrossChoice.value === upChoice.value) {
        const other = changed === upChoice ? acrossChoice : upChoice;
        other.value = view.system.state.find((variable) => variable.name !== other.value).name;
      }
      const index = (select) => view.system.state.findIndex((variable) => variable.name === select.value);
      [view.across, view.up, view.what] = [index(acrossChoice), index(upChoice), whatChoice.value];
      makeSliders();
      reset();
    }

    // A slider for each variable that is on neither axis.
    function makeSliders() {
      sliders.replaceChildren();
      view.system.state.forEach((variable, i) => {
        if (i === view.across || i === view.up) return;
        const label = element(sliders, "label", {}, "");
        const caption = element(label, "span");
        const [min, max] = variable.ends;
        const slider = element(label, "input", { type: "range", min, max, step: (max - min) / 200 });
        slider.value = view.start[i];
        const show = () => {
          caption.textContent = `${variable.symbol} = ${inState(variable, view.start[i])}`;
          slider.setAttribute("aria-valuetext", inState(variable, view.start[i]));
        };
        show();
        slider.addEventListener("input", () => {
          view.start[i] = Number(slider.value);
          show();
          reset();
        });
      });
    }

    function reset() {
      pause();
      for (const panel of shown()) panel.reset();
      writeAddress();
    }

    // A normal number, by Box and Muller.
    const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());

    function advance() {
      const push = view.noise ? view.noise * normal() : 0; // the same for both
      for (const panel of shown()) panel.advance(push);
      if (over()) pause();
    }

    function pause() {
      const repaint = view.playing && view.system.state.length > 2;
      view.playing = false;
      clearTimeout(clock);
      playButton.textContent = "Play";
      for (const panel of shown()) {
        panel.hush(false);
        if (repaint) panel.paint();
      }
    }

    function play() {
      if (over()) reset();
      view.playing = true;
      playButton.textContent = "Pause";
      driving()?.box.focus({ preventScroll: true }); // the arrow keys are the reader's
      for (const panel of shown()) panel.hush(true);
      const pace = (1000 * known(view.system).seconds(view.system.constants)) / Number(speedChoice.value);
      let due = performance.now() + pace;
      const next = () => {
        if (!view.playing) return;
        advance();
        // A browser that fell behind does not catch up all at once.
        due = Math.max(due + pace, performance.now());
        clock = setTimeout(next, due - performance.now());
      };
      clock = setTimeout(next, pace);
    }

    function toggle() {
      if (!view.playing) return play();
      pause();
      for (const panel of shown()) panel.show();
    }

    function put(state) {
      view.start = state;
      makeSliders();
      reset();
    }

    // The number of a policy, by its name.
    const named = (system, name) =>
      data.policies.findIndex((p) => p.system === system && `${p.algorithm}, ${p.made}` === name);

    const nameOf = (value) => (data.policies[value] ? `${data.policies[value].algorithm}, ${data.policies[value].made}` : value);

    // All that is chosen stands in the address, so that it can be shared.
    function writeAddress() {
      if (!settled) return;
      const chosen = { system: systemChoice.value, policy: nameOf(policyChoice.value), beside: nameOf(besideChoice.value),
        across: acrossChoice.value, up: upChoice.value, colour: whatChoice.value, speed: speedChoice.value,
        start: view.start.map((value) => Number(value.toFixed(4))).join(" "), endless: Number(endless.checked) };
      for (const [name, { input }] of Object.entries(factors)) chosen[name] = input.value;
      history.replaceState(null, "", `#${new URLSearchParams(chosen)}`);
    }

    function readAddress() {
      const given = new URLSearchParams(location.hash.slice(1));
      if (!(given.get("system") in data.systems)) return;
      const set = (select, value) => {
        if ([...select.options].some((option) => option.value === String(value))) select.value = value;
      };
      systemChoice.value = given.get("system");
      for (const [name, { input }] of Object.entries(factors)) if (given.has(name)) input.value = given.get(name);
      endless.checked = given.get("endless") === "1";
      chooseSystem();
      set(policyChoice, named(systemChoice.value, given.get("policy")));
      const beside = given.get("beside");
      set(besideChoice, ["you", "none"].includes(beside) ? beside : named(systemChoice.value, beside));
      choosePolicies();
      set(acrossChoice, given.get("across"));
      set(upChoice, given.get("up"));
      set(whatChoice, given.get("colour"));
      set(speedChoice, given.get("speed"));
      chooseAxes();
      const start = (given.get("start") ?? "").split(" ").map(Number);
      if (start.length === view.start.length && start.every(Number.isFinite)) put(start);
    }

    // Show what a button outside asks for: a system, a policy and one beside it, by their names.
    function present({ system, policy, beside }) {
      systemChoice.value = system;
      chooseSystem();
      policyChoice.value = named(system, policy);
      besideChoice.value = ["you", "none"].includes(beside) ? beside : named(system, beside);
      chooseBeside();
      place.scrollIntoView({ behavior: "smooth", block: "start" });
      play();
    }

    function chooseBeside() {
      if (besideChoice.value === "you" && speedChoice.value === "1") speedChoice.value = "0.5"; // hands are slow
      choosePolicies();
    }

    // The arrow keys drive, unless they have something else to do where the focus is.
    const steers = (event) => event.key in (driving()?.keys ?? {}) && !event.target.matches("select, .spaql-row input");
    place.addEventListener("keydown", (event) => {
      if (event.key === " " && event.target === driving()?.box) toggle();
      else if (steers(event)) driving().hold(event.key);
      else return;
      event.preventDefault();
    });
    place.addEventListener("keyup", (event) => {
      if (steers(event)) driving().release();
    });

    for (const input of [...Object.values(factors).map((factor) => factor.input), endless]) {
      input.addEventListener("input", () => {
        vary();
        reset();
      });
    }
    systemChoice.addEventListener("change", chooseSystem);
    policyChoice.addEventListener("change", choosePolicies);
    besideChoice.addEventListener("change", chooseBeside);
    for (const select of [acrossChoice, upChoice, whatChoice]) {
      select.addEventListener("change", () => chooseAxes(select));
    }
    playButton.addEventListener("click", toggle);
    stepButton.addEventListener("click", () => {
      pause();
      if (over()) reset();
      advance();
    });
    resetButton.addEventListener("click", reset);
    randomButton.addEventListener("click", () => {
      const spread = ({ period }) => (period ? 1 : 0.15); // anywhere on a circle, else near
      put(view.system.state.map((variable) => valueAt(variable, 0.5 + spread(variable) * (Math.random() - 0.5))));
    });
    speedChoice.addEventListener("change", () => {
      if (view.playing) {
        clearTimeout(clock);
        play();
      }
    });
    for (const button of document.querySelectorAll("[data-spaql-show]")) {
      const asked = JSON.parse(button.dataset.spaqlShow);
      button.addEventListener("click", () => present(asked));
      const size = button.querySelector("[data-spaql-leaves]"); // where it says how large its policy is
      const policy = data.policies[named(asked.system, asked.policy)];
      if (size && policy) size.textContent = `${policy.leaves}-leaf`;
    }
    // The book's switch between light and dark.
    new MutationObserver(() => shown().forEach((panel) => panel.show()))
      .observe(document.documentElement, { attributeFilter: ["data-theme"] });
    fill(systemChoice, Object.entries(data.systems).map(([id, s]) => [id, s.title]));
    chooseSystem();
    readAddress();
    settled = true;
  }

  const parts = { STYLE, element, choice, fill, number, colour, shadesOf, drawScene };
  return { observe, step, find, act, cellBounds, episode, build, parts };
})();

{
  const place = document.getElementById("spaql-explorer");
  if (place) spaqlExplorer.build(place, SPAQL_POLICIES);
}

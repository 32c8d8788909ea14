"use strict";
// The cart and its pole: Gymnasium's dynamics, with its float32 observations, as in spaql/systems/cartpole.py.

(globalThis.SPAQL_SYSTEMS ??= {}).CartPole = {
  start: [0, 0, 0.03, 0], // leaning a little
  decimals: 0, // of the return
  ending: "it fell",

  seconds: (constants) => constants.dt,

  begin: (random) => [0, 0, 0, 0].map(() => (2 * random() - 1) * 0.05), // as Gymnasium draws its starts
  push: ([x, speed, theta, turning], by) => [x, speed, theta, turning + 0.5 * by],
  vary(c, { mass = 1, length = 1 }) {
    const [pole, half] = [c.mass_pole * mass, c.length * length];
    return { ...c, mass_pole: pole, length: half, total_mass: c.total_mass - c.mass_pole + pole,
      pole_mass_length: pole * half };
  },

  words: (force) => (force > 0 ? "push right" : "push left"),

  observe: (state) => state.map(Math.fround),

  // Push to the left (0) or to the right (1); return the next state, the reward and the end.
  step(c, [x, speed, theta, turning], action) {
    const force = action === 1 ? c.force : -c.force;
    const cos = Math.cos(theta);
    const sin = Math.sin(theta);
    const temp = (force + c.pole_mass_length * (turning * turning) * sin) / c.total_mass;
    const spin = (c.gravity * sin - cos * temp) / (c.length * (4 / 3 - (c.mass_pole * (cos * cos)) / c.total_mass));
    const push = temp - (c.pole_mass_length * spin * cos) / c.total_mass;
    const next = [x + c.dt * speed, speed + c.dt * push, theta + c.dt * turning, turning + c.dt * spin];
    return { state: next, reward: 1, over: Math.abs(next[0]) > c.max_position || Math.abs(next[2]) > c.max_angle };
  },

  draw({ context, width, height, ink, mark, line, arrow }, { constants }, [x, , theta], force) {
    const end = constants.max_position;
    const scale = width / (2 * end + 0.8);
    const ground = height * 0.8;
    const cart = width / 2 + x * scale;
    const length = 2.8 * constants.length * scale; // half the pole, drawn longer than it is to be seen
    line(width / 2 - end * scale, ground, width / 2 + end * scale, ground, 2);
    for (const side of [-end, end]) line(width / 2 + side * scale, ground - 8, width / 2 + side * scale, ground + 8, 2);
    context.fillRect(cart - 32, ground - 34, 64, 30);
    context.strokeStyle = mark;
    line(cart, ground - 34, cart + length * Math.sin(theta), ground - 34 - length * Math.cos(theta), 8);
    context.strokeStyle = ink;
    if (force) arrow(cart, ground - 19, Math.sign(force));
  },
};

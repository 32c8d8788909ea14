"use strict";
// Two links and a motor at the joint between them: Gymnasium's dynamics, with its float32 observations, as in
// spaql/systems/acrobot.py.

(globalThis.SPAQL_SYSTEMS ??= {}).Acrobot = (() => {
  const clip = (value, reach) => Math.min(reach, Math.max(-reach, value));

  function wrapped(angle) {
    while (angle > Math.PI) angle -= 2 * Math.PI;
    while (angle < -Math.PI) angle += 2 * Math.PI;
    return angle;
  }

  // How angles and speeds change under a torque.
  function change(c, [theta1, theta2, speed1, speed2], torque) {
    const cos = Math.cos(theta2);
    const sin = Math.sin(theta2);
    const d1 = c.inertia_1 + c.mass_2 * (c.squares + 2 * c.arms * cos) + c.inertia + c.inertia;
    const d2 = c.mass_2 * (c.square_2 + c.arms * cos) + c.inertia;
    const phi2 = c.weight_2 * Math.cos(theta1 + theta2 - Math.PI / 2);
    const phi1 = -c.coupling * (speed2 * speed2) * sin - 2 * c.coupling * speed2 * speed1 * sin
      + c.weight_1 * Math.cos(theta1 - Math.PI / 2) + phi2;
    const second = (torque + (d2 / d1) * phi1 - c.coupling * (speed1 * speed1) * sin - phi2)
      / (c.inertia_2 - (d2 * d2) / d1);
    return [speed1, speed2, -(d2 * second + phi1) / d1, second];
  }

  return {
    start: [0.1, 0, 0, 0], // hanging down, a little aside
    decimals: 0, // of the return
    ending: "it is up",

    seconds: (constants) => constants.dt,

    push: ([theta1, theta2, speed1, speed2], by) => [theta1, theta2, speed1 + 0.5 * by, speed2],

    words: (torque) => (torque === 0 ? "no torque" : torque > 0 ? "turn anticlockwise" : "turn clockwise"),

    observe: ([theta1, theta2, speed1, speed2]) =>
      [Math.cos(theta1), Math.sin(theta1), Math.cos(theta2), Math.sin(theta2), speed1, speed2].map(Math.fround),

    // Apply the torque of an action's number, by one step of Runge and Kutta; return the next state, reward and end.
    step(c, state, action) {
      const torque = c.torque + c.torque_step * action;
      const after = (time, slope) => state.map((value, i) => value + time * slope[i]);
      const k1 = change(c, state, torque);
      const k2 = change(c, after(c.dt / 2, k1), torque);
      const k3 = change(c, after(c.dt / 2, k2), torque);
      const k4 = change(c, after(c.dt, k3), torque);
      const moved = state.map((value, i) => value + (c.dt / 6) * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]));
      const next = [wrapped(moved[0]), wrapped(moved[1]), clip(moved[2], c.max_speed_1), clip(moved[3], c.max_speed_2)];
      const over = -Math.cos(next[0]) - Math.cos(next[1] + next[0]) > 1;
      return { state: next, reward: over ? 0 : -1, over };
    },

    draw({ context, width, height, ink, mark, line }, system, [theta1, theta2], torque) {
      // Both links are drawn one long, and the end of the second must come above the dashed line.
      const length = height * 0.225;
      const [x, y] = [width / 2, height / 2];
      const joint = [x + length * Math.sin(theta1), y + length * Math.cos(theta1)];
      const end = [joint[0] + length * Math.sin(theta1 + theta2), joint[1] + length * Math.cos(theta1 + theta2)];
      context.strokeStyle = mark;
      context.setLineDash([8, 8]);
      line(width * 0.1, y - length, width * 0.9, y - length, 2);
      context.setLineDash([]);
      context.strokeStyle = ink;
      line(x, y, ...joint, 10);
      line(...joint, ...end, 10);
      context.beginPath();
      context.arc(...end, 8, 0, 2 * Math.PI);
      context.fill();
      context.fillStyle = mark;
      for (const place of [[x, y], joint]) {
        context.beginPath();
        context.arc(...place, 4, 0, 2 * Math.PI);
        context.fill();
      }
      if (!torque) return;
      // An arc around the joint, in the direction in which the second link is turned.
      context.strokeStyle = mark;
      context.lineWidth = 4;
      const from = Math.PI / 2 - (theta1 + theta2);
      const to = from - (torque / system.action.ends[1]) * 1.2;
      context.beginPath();
      context.arc(...joint, 28, from, to, torque > 0);
      context.stroke();
      context.beginPath();
      context.arc(joint[0] + 28 * Math.cos(to), joint[1] + 28 * Math.sin(to), 6, 0, 2 * Math.PI);
      context.fill();
    },
  };
})();

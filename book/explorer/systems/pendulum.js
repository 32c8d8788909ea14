"use strict";
// The pendulum: Gymnasium's dynamics, with its float32 observations and torques, as in spaql/systems/pendulum.py.

(globalThis.SPAQL_SYSTEMS ??= {}).Pendulum = (() => {
  const clip = (value, reach) => Math.min(reach, Math.max(-reach, value));

  // Python's %: the sign of the divisor.
  const modulo = (a, b) => ((a % b) + b) % b;
  const principal = (angle) => {
    const turned = angle + Math.PI;
    if (turned >= 0 && turned < 2 * Math.PI) return turned - Math.PI;
    return modulo(turned, 2 * Math.PI) - Math.PI;
  };

  return {
    start: [Math.PI - 0.1, 0], // nearly hanging down
    decimals: 1, // of the return
    ending: "", // no episode ends before its time
    right: -1, // torques that are negative turn to the right

    seconds: (constants) => constants.dt,

    begin: (random) => [(2 * random() - 1) * Math.PI, 2 * random() - 1], // as Gymnasium draws its starts
    push: ([theta, speed], by) => [theta, speed - 2 * by],
    vary: (c, { mass = 1, length = 1 }) => ({ ...c, gravity: c.gravity / length,
      per_inertia: c.per_inertia / (mass * length * length) }),

    observe: ([theta, speed]) => [Math.cos(theta), Math.sin(theta), speed].map(Math.fround),

    // Apply an action (a number of the list of actions, or a torque); return the next state, the reward and the end.
    step(c, [theta, speed], action) {
      const torque = Math.fround(clip(c.torque + c.torque_step * action, c.max_torque));
      const angle = principal(theta);
      const effort = Math.fround(Math.fround(0.001) * Math.fround(torque * torque));
      const cost = angle * angle + 0.1 * (speed * speed) + effort;
      const push = Math.fround(Math.fround(c.per_inertia) * torque);
      const unclipped = speed + (c.gravity * Math.sin(theta) + push) * c.dt;
      const clipped = clip(unclipped, c.max_speed);
      const next = [theta + (c.clip_first ? clipped : unclipped) * c.dt, clipped];
      return { state: next, reward: (-cost + c.shift) / c.scale, over: false };
    },

    draw({ context, width, height, mark, line }, system, [theta], torque) {
      const [cx, cy, length] = [width / 2, height / 2, height * 0.38];
      context.setLineDash([4, 6]); // where it should be
      line(cx, cy, cx, cy - length - 12, 1.5);
      context.setLineDash([]);
      line(cx, cy, cx - length * Math.sin(theta), cy - length * Math.cos(theta), 12);
      context.beginPath();
      context.arc(cx, cy, 5, 0, 2 * Math.PI);
      context.fill();
      if (!torque) return;
      // An arc as long as the torque is strong, in the direction it turns.
      context.strokeStyle = context.fillStyle = mark;
      context.lineWidth = 4;
      const end = -Math.PI / 2 - (torque / system.action.ends[1]) * 1.2;
      context.beginPath();
      context.arc(cx, cy, 40, -Math.PI / 2, end, torque > 0);
      context.stroke();
      context.beginPath();
      context.arc(cx + 40 * Math.cos(end), cy + 40 * Math.sin(end), 7, 0, 2 * Math.PI);
      context.fill();
    },
  };
})();

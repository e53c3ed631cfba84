"use strict";

module.exports = async (payload, helpers) => {
  await helpers.query("insert into app.effects (task, attempt, payload) values ($1, $2, $3::json)", [
    helpers.job.task_identifier,
    helpers.job.attempts,
    JSON.stringify(payload),
  ]);
};

// What steps.py is to the Python clients.

export function readPlan() {
  return JSON.parse(process.argv[2]);
}

/** All calls of the plan, one after the other; what a client shows of each. */
export async function makeCalls(plan, client) {
  const answers = [];
  for (const [name, planned] of plan.calls) {
    const filled = Object.entries(planned).map(([key, value]) => [
      key,
      value === "$SESSION" ? answers[0].session_id : value,
    ]);
    const result = await client.callTool({ name, arguments: Object.fromEntries(filled) });
    if (result.isError) throw new Error(`${name}: ${JSON.stringify(result.content)}`);
    answers.push(result.structuredContent);
  }
  return answers;
}

export function report(tools, answers, protocol = null) {
  console.log(JSON.stringify({ tools, answers, protocol }));
}

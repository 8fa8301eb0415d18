// Does what the call asks for, and says in #outcome what came of it: name -> "gained" or why not.
'use strict';

const LONGEST = 1_500;

async function outcomeOf(attack) {
  const late = new Promise((resolve) => { setTimeout(resolve, LONGEST, 'nothing came'); });
  try {
    const gained = await Promise.race([Promise.resolve().then(attack), late]);
    return gained === true ? 'gained' : `nothing: ${gained}`;
  } catch (error) {
    return `refused: ${error?.name}: ${error?.message}`.slice(0, 300);
  }
}

(async () => {
  const { attack, to } = await toolboxAPI.invocation.getLaunchContext();
  if (attack !== 'all') {
    ({ ...leaving(to), ...ending })[attack]();
    return;
  }
  const outcome = {};
  for (const [name, one] of Object.entries(attacks(to))) outcome[name] = await outcomeOf(one);
  byId('outcome').textContent = JSON.stringify(outcome);
  byId('outcome').hidden = false;
})();

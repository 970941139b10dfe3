// Used when heed serves the page: sends a typed sentence to it and shows the result.

const mostAsked = 8;        // sentences that are kept

async function ask(request) {
  const answer = await fetch('/api/attention', {method: 'POST', headers: {'Content-Type': 'application/json'},
    body: JSON.stringify(request)});
  const json = await answer.json().catch(() => ({error: `the server answered ${answer.status}`}));
  if (!answer.ok) throw new Error(json.error);
  return json;
}

function showAnswer(json) {
  const sentence = sentenceOf(json);
  sentence.asked = true;
  sentences.push(sentence);
  if (sentences.length > mostAsked) sentences.splice(embedded.sentences.length, 1);
  byId('sentences').replaceChildren();
  choose(sentences.length - 1);
}

async function askAndShow(request) {
  const button = byId('ask').querySelector('button');
  button.disabled = true;
  byId('ask-error').textContent = '';
  try {
    showAnswer(await ask(request));
  } catch (error) {
    byId('ask-error').textContent = error.message;
  }
  button.disabled = false;
}

function requestOfForm() {
  return {sentence: byId('ask-text').value, heads: byId('ask-heads').valueAsNumber, seed: byId('ask-seed').valueAsNumber};
}

function setUpServer() {
  if (!embedded.hasServer) return byId('ask').remove();
  byId('ask').hidden = false;
  byId('ask').addEventListener('submit', (event) => {
    event.preventDefault();
    askAndShow(requestOfForm());
  });
  const text = new URLSearchParams(location.hash.slice(1)).get('text');
  if (text === null) return undefined;
  byId('ask-text').value = text;
  return askAndShow(requestOfForm());
}

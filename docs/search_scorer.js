// How the search ranks what it finds: titles, then the name itself in the reference, guides and the glossary, other
// pages, the text of the reference and of old changes, and last the constants.
var Scorer = {
  score: ([page, , anchor, , score]) =>
    score +
    (/^(guides\/|glossary$)/.test(page) ? 1 : 0) -
    (/^(reference\/api\/|changelog$)/.test(page) ? 4 : 0) -
    (/\.[A-Z_]+$/.test(anchor ?? "") ? 12 : 0),
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  objNameMatch: 12,
  objPartialMatch: 1,
  objPrio: { 0: 1, 1: 0, 2: -3 },
  objPrioDefault: 0,
};

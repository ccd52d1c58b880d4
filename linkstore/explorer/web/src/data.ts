/** Where a page gets its data: from the server that sent it, or from itself. */

import type {
  Absence, Answer, Checkup, Corpus, DocumentData, Facets, Found, RecallData, Session, Settings, StoreData, Suggestion,
  TurnData,
} from "./types";

export interface Source {
  store(): Promise<StoreData>;
  answer(question: string, settings: Settings): Promise<Answer>;
  facets(question: string, settings: Settings): Promise<Facets>;
  absence(question: string, settings: Settings, id: string): Promise<Absence>;
  document(id: string, question: string): Promise<DocumentData>;
  find(text: string): Promise<Found[]>;
  corpus(): Promise<Corpus>;
  checkup(): Promise<Checkup>;
  suggestions(page: string): Promise<Suggestion[]>;
  accept(source: string, target: string): Promise<{ changed: number }>;
  sessions(): Promise<Session[]>;
  turns(session: string): Promise<TurnData[]>;
  recall(session: string, question: string): Promise<RecallData>;
}

export class Unauthorized extends Error {}

const TOKEN = "linkstore-token";

/** Takes the token out of the address, where it is after `#token=`, and keeps it for this server. */
export function takeToken(): void {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (found?.[1]) {
    localStorage.setItem(TOKEN, decodeURIComponent(found[1]));
    history.replaceState(null, "", `${location.pathname}#/ask`);
  }
}

export function keepToken(token: string): void {
  localStorage.setItem(TOKEN, token);
}

async function call<T>(view: string, body: object = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`api/${view}`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Authorization: `Bearer ${localStorage.getItem(TOKEN) ?? ""}`,
      },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Error("the server does not answer; is `linkstore serve` still running?");
  }
  if (response.status === 401) throw new Unauthorized("the token is missing or wrong");
  const value: unknown = await response.json().catch(() => null);
  if (!response.ok) {
    const told = value && typeof value === "object" && "error" in value ? String(value.error) : "";
    throw new Error(told || `the server answered with status ${response.status}`);
  }
  return value as T;
}

export const server: Source = {
  store: () => call("store"),
  answer: (question, settings) => call("answer", { question, settings }),
  facets: (question, settings) => call("facets", { question, settings }),
  absence: (question, settings, id) => call("absence", { question, settings, id }),
  document: (id, question) => call("document", { id, question }),
  find: (text) => call("find", { text }),
  corpus: () => call("corpus"),
  checkup: () => call("checkup"),
  suggestions: (page) => call("suggestions", { page }),
  accept: (source, target) => call("accept", { source, target }),
  sessions: () => call("sessions"),
  turns: (session) => call("turns", { session }),
  recall: (session, question) => call("recall", { session, question }),
};

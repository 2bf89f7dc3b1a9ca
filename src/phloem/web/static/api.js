// Requests to the server, which answers JSON: what was asked, or {message, hint, place, …}.

export class Refusal extends Error {
  constructor(record) {
    super(record.message);
    Object.assign(this, record);
  }
}

async function answered(response) {
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  if (response.ok) return isJson ? response.json() : response.headers.get("content-type") === "application/pdf" ? response.blob() : response.text();
  const record = isJson ? await response.json()
    : { message: (await response.text()).trim() || response.statusText, hint: "Reload the page." };
  throw new Refusal({ status: response.status, ...record });
}

async function asked(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal({
      message: "the server does not answer", hint: "Start `phloem page` again; analyses go on meanwhile.",
    });
  }
  return answered(response);
}

export function get(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given).toString();
  return asked(`/api/${path}${query ? `?${query}` : ""}`);
}

// signal: of an AbortController, for what may take long; the server ends its work with the request.
export function post(path, body = {}, signal = undefined) {
  return asked(`/api/${path}`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal,
  });
}

export function fileUrl(name) {
  return `/api/files/${name.split("/").map(encodeURIComponent).join("/")}`;
}

export function put(file, replace) {
  return asked(`${fileUrl(file.name)}${replace ? "?replace=yes" : ""}`, { method: "PUT", body: file });
}

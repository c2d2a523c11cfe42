// Proposes topics while somebody writes what one is called: those that the search of the map finds. A field that is
// given the title of one that is proposed names that one, by the hidden field beside it. Without this script the form
// finds the topic once it is sent.
"use strict"
{
	const known = document.getElementById("known")
	const list = document.createElement("datalist")
	list.id = "proposed"
	document.body.append(list)
	const search = location.pathname.split("/topics/")[0] + "/search?limit=8&q="
	const lang = new URLSearchParams(location.search).get("lang")
	let found = [], timer, asking

	const option = (title, label) => {
		const made = document.createElement("option")
		made.value = title
		if (label) made.label = label
		return made
	}

	const propose = async field => {
		asking?.abort()
		asking = new AbortController()
		const query = encodeURIComponent(field.value) + (lang ? "&lang=" + encodeURIComponent(lang) : "")
		const answer = await fetch(search + query, {headers: {Accept: "application/json"}, signal: asking.signal})
		if (!answer.ok) return
		found = (await answer.json()).results
		const options = found.map(t => option(t.title, t.title + (t.types ? " (" + t.types.map(type => type.title).join(", ") + ")" : "")))
		list.replaceChildren(...options, ...[...known?.options ?? []].map(o => option(o.value)))
		field.setAttribute("list", list.id)
	}

	document.addEventListener("input", event => {
		const field = event.target
		if (!field.matches("input[list=known], input[list=proposed]")) return
		clearTimeout(timer)
		const named = found.filter(t => t.title === field.value)
		let is = document.getElementsByName(field.id + "-is")[0]
		if (named.length === 1) {
			if (!is) {
				is = document.createElement("input")
				is.type = "hidden"
				is.name = field.id + "-is"
				field.form.append(is)
			}
			is.value = named[0].topicSI + " " + named[0].title
		} else if (field.value.trim()) {
			timer = setTimeout(() => propose(field).catch(() => {}), 150)
		}
	})
}

// SPDX-License-Identifier: MIT
// flame_graph: zoom by click, search and keys of an exported flame graph.
//
// Runs inside the SVG document that export_svg.c writes. Each frame is a <g class="frame"> with a
// <title>, a <rect> and a <text>. Where scripts are off, the picture is complete but not interactive.
"use strict";
(() => {
    const root = document.documentElement;
    const full = root.viewBox.baseVal.width;
    const glyph = 6.6; // of the 11 px monospace text
    const frames = [...document.querySelectorAll(".frame")].map((group) => {
        const rect = group.querySelector("rect");
        const number = (name) => Number(rect.getAttribute(name));
        return {
            group, rect, text: group.querySelector("text"), x: number("x"), y: number("y"),
            width: number("width"), name: group.querySelector("title").textContent.split("\n")[0],
        };
    });
    const field = document.getElementById("search");
    const matched = document.getElementById("matched");
    const history = [frames[0]];

    function place(frame, x, width) {
        frame.group.style.display = "";
        frame.rect.setAttribute("x", x);
        frame.rect.setAttribute("width", width);
        frame.text.setAttribute("x", x + 3);
        const room = Math.floor((width - 6) / glyph);
        const letters = [...frame.name];
        frame.text.textContent = room < 3 ? ""
            : letters.length <= room ? frame.name : letters.slice(0, room - 2).join("") + "..";
    }

    function zoomTo(target) {
        const slack = 1e-3; // coordinates were rounded when they were written
        const end = target.x + target.width;
        for (const frame of frames) {
            const isAbove = frame.y <= target.y;
            if (isAbove && frame.x >= target.x - slack && frame.x + frame.width <= end + slack) {
                const scale = full / target.width;
                place(frame, (frame.x - target.x) * scale, frame.width * scale);
                frame.group.classList.remove("behind");
            } else if (!isAbove && frame.x <= target.x + slack && frame.x + frame.width >= end - slack) {
                place(frame, 0, full);
                frame.group.classList.add("behind");
            } else {
                frame.group.style.display = "none";
            }
        }
    }

    function goBack() {
        if (history.length > 1) {
            history.pop();
        }
        zoomTo(history[history.length - 1]);
    }

    // Text, or a regular expression between slashes.
    function matcherOf(wanted) {
        const slashed = /^\/(.+)\/$/.exec(wanted);
        if (slashed === null) {
            const lower = wanted.toLowerCase();
            return (name) => name.toLowerCase().includes(lower);
        }
        const expression = new RegExp(slashed[1]);
        return (name) => expression.test(name);
    }

    function search() {
        let matches = () => false;
        field.classList.remove("wrong");
        try {
            matches = field.value === "" ? matches : matcherOf(field.value);
        } catch {
            field.classList.add("wrong");
        }
        const found = frames.filter((frame) => {
            const isMatch = matches(frame.name);
            frame.group.classList.toggle("match", isMatch);
            return isMatch;
        });
        // A frame inside a matching frame is already part of the share.
        let share = 0;
        let covered = 0;
        for (const frame of found.sort((a, b) => a.x - b.x || b.width - a.width)) {
            if (frame.x + frame.width > covered) {
                share += frame.width;
                covered = frame.x + frame.width;
            }
        }
        matched.textContent = field.value === "" ? ""
            : `matched: ${(share / full * 100).toFixed(1)}%`;
    }

    for (const frame of frames) {
        frame.group.addEventListener("click", () => {
            if (getSelection().isCollapsed && history[history.length - 1] !== frame) {
                history.push(frame);
                zoomTo(frame);
            }
        });
    }
    field.addEventListener("input", search);
    document.getElementById("back").addEventListener("click", goBack);
    addEventListener("keydown", (event) => {
        if (event.key === "/" && event.target !== field) {
            field.focus();
            event.preventDefault();
        } else if (event.key === "Escape") {
            field.value = "";
            field.blur();
            search();
            history.length = 1;
            zoomTo(frames[0]);
        } else if (event.key === "Backspace" && event.target !== field) {
            goBack();
        }
    });
    document.getElementById("controls").style.display = "";
})();
